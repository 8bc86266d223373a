// validator: checks whether a JSON value satisfies a JSON Schema (2020-12 and drafts 4 to 7).
//
// It is used for values that the schema itself lists (enum, const, property names), and by tests as
// an independent check of the grammars. One thread at a time. Throws the exception refusal for
// keywords that it does not support.
#pragma once

#include <set>
#include <string>

#include "config/base/value.hpp"
#include "models/text/grammar/schema/document.hpp"
#include "models/text/grammar/schema/patterns.hpp"

namespace twill::models::grammar {

class validator {
public:
  validator(const document& doc, patterns& known) : doc_(&doc), patterns_(&known) {}

  bool valid(const value& schema, const value& instance, int depth = 0);

private:
  bool valid_number(const value& schema, const value& instance);
  bool valid_string(const value& schema, const std::string& text);
  bool valid_array(const value& schema, const value_list& items, int depth);
  bool valid_object(const value& schema, const value_object& members, const value& instance,
                    int depth);
  bool valid_unevaluated(const value& schema, const value& instance, int depth);
  void add_evaluated(std::set<std::string>& names, const value& schema, const value& instance,
                     int depth, bool all);
  bool valid_combined(const value& schema, const value& instance, int depth);

  const document* doc_;
  patterns* patterns_;
};

/// Equality of JSON values: 1 equals 1.0, objects compare without order.
bool json_equal(const value& a, const value& b);

/// Whether a value has the type `type`, one of JSON Schema's seven type names.
bool has_type(const value& instance, const std::string& type);

} // namespace twill::models::grammar
