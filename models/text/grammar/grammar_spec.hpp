// grammar_spec: what the text of an answer must look like, as a client says it. A plain value.
#pragma once

#include <string>
#include <vector>

namespace twill::models::grammar {

struct grammar_spec {
  enum class kind {
    json_object, ///< any JSON object
    json_schema, ///< `text` is a JSON Schema
    regex,       ///< `text` is a regular expression of the whole answer
    choice,      ///< one of `choices`
    ebnf, ///< `text` is a grammar in GBNF (llama.cpp) or XGrammar's EBNF; its start is `root`
  };
  kind what = kind::json_object;
  std::string text;
  std::vector<std::string> choices;
  /// json_schema: objects that say nothing of other properties have none.
  bool closed_objects = false;

  bool operator==(const grammar_spec&) const = default;
};

} // namespace twill::models::grammar
