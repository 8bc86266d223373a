#include "models/text/grammar/spec_text.hpp"

#include "models/text/grammar/gbnf.hpp"
#include "models/text/grammar/schema/json_text.hpp"
#include "models/text/grammar/schema/regex_grammar.hpp"
#include "models/text/grammar/schema/schema_grammar.hpp"

namespace twill::models::grammar {

result<std::string> grammar_text(const config::grammar_spec& spec, bool repeated_items) {
  try {
    switch (spec.kind) {
    case config::grammar_kind::json_object:
      return grammar_of_any_object();
    case config::grammar_kind::json_schema:
      return grammar_of_schema(
          spec.text, {.closed_objects = spec.closed_objects, .repeated_items = repeated_items});
    case config::grammar_kind::regex:
      return grammar_of_regex(spec.text);
    case config::grammar_kind::choice:
      return grammar_of_choices(spec.choices);
    case config::grammar_kind::framed:
      return grammar_of_frames(spec, repeated_items);
    case config::grammar_kind::ebnf:
      if (spec.text.empty()) return failure{errc::bad_grammar, "the grammar is empty"};
      return ebnf_of_gbnf(spec.text).value_or(spec.text);
    }
  } catch (const refusal& r) {
    return r.why;
  }
  return failure{errc::bad_grammar, "unknown kind of grammar"};
}

bool writes_json(const config::grammar_spec& spec) {
  using kind = config::grammar_kind;
  return spec.kind == kind::json_object || spec.kind == kind::json_schema ||
         spec.kind == kind::framed;
}

} // namespace twill::models::grammar
