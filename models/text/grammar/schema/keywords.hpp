// keywords: reads the keywords of one schema object and checks their types. The functions are pure;
// any thread may call them.
//
// A keyword whose value has the wrong type is refused (bad_schema) with its name and place.
// Guessing its meaning could accept values that the schema was meant to refuse.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/base/value.hpp"
#include "models/text/grammar/schema/decimal.hpp"
#include "models/text/grammar/schema/document.hpp"

namespace twill::models::grammar {

/// Throws a refusal of `keyword` in `schema`, with the detail "`keyword` at #/...: why".
[[noreturn]] void refuse_keyword(errc code, const document& doc, const value& schema,
                                 const std::string& keyword, const std::string& why);

/// The type names in the value of `type`, which is a string or a list of strings. Each must be one
/// of JSON Schema's seven types.
std::vector<std::string> type_names(const value& type);

std::optional<std::int64_t> count_of(const value& schema, const char* keyword, const document& doc);
std::optional<std::string> string_of(const value& schema, const char* keyword, const document& doc);
/// A list of property names; empty when the keyword is absent.
std::vector<std::string> names_of(const value& schema, const char* keyword, const document& doc);
/// A list of schemas; empty when the keyword is absent.
std::vector<const value*> schemas_of(const value& schema, const char* keyword, const document& doc);

/// The rules of minimum, maximum, exclusive* and multipleOf. The keyword `type` is not read here.
number_rules number_rules_of(const value& schema, const document& doc);

/// Refuses `given`, the value of `keyword`, if it contains a number of 2^63 or more. Such numbers
/// are rounded when they are read, so a different number would be enforced.
void check_exact(const value& given, const value& schema, const char* keyword, const document& doc);

/// The meaning of items, prefixItems and additionalItems in any draft.
struct items_shape {
  std::vector<const value*> prefix;
  const value* rest = nullptr; ///< nullptr: anything
};
items_shape items_of(const value& schema, const document& doc);

/// Whether `if` is a keyword in the document's draft.
bool has_if(const document& doc);

/// Refuses keywords that constrain values in a way that twill does not enforce.
void check_known(const value& schema, const document& doc);

} // namespace twill::models::grammar
