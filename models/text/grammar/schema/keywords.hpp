// keywords: reads the keywords of one schema object with their types checked. Pure; any thread.
//
// A keyword of the wrong type is refused by name and place (bad_schema): guessing what was meant
// could accept what the schema refuses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/base/value.hpp"
#include "models/text/grammar/schema/decimal.hpp"
#include "models/text/grammar/schema/document.hpp"

namespace twill::models::grammar {

/// Refuses `keyword` of `schema`: "`keyword` at #/...: why".
[[noreturn]] void refuse_keyword(errc code, const document& doc, const value& schema,
                                 const std::string& keyword, const std::string& why);

/// The names in `type`, a string or a list of strings, each one of the seven.
std::vector<std::string> type_names(const value& type);

std::optional<std::int64_t> count_of(const value& schema, const char* keyword, const document& doc);
std::optional<std::string> string_of(const value& schema, const char* keyword, const document& doc);
/// A list of property names; empty when the keyword is absent.
std::vector<std::string> names_of(const value& schema, const char* keyword, const document& doc);
/// A list of schemas; empty when the keyword is absent.
std::vector<const value*> schemas_of(const value& schema, const char* keyword, const document& doc);

/// minimum, maximum, exclusive*, multipleOf; `type` is not looked at.
number_rules number_rules_of(const value& schema, const document& doc);

/// Refuses `given`, the value of `keyword`, where it holds a number of 2^63 or more: such numbers
/// are rounded when they are read, so that another number would be taken for them.
void check_exact(const value& given, const value& schema, const char* keyword, const document& doc);

/// items, prefixItems, additionalItems of any draft.
struct items_shape {
  std::vector<const value*> prefix;
  const value* rest = nullptr; ///< nullptr: anything
};
items_shape items_of(const value& schema, const document& doc);

/// Whether `if` is a keyword in the document's draft.
bool has_if(const document& doc);

/// Refuses keywords that assert something which twill does not enforce.
void check_known(const value& schema, const document& doc);

} // namespace twill::models::grammar
