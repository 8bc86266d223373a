// grammar_spec: the format that the text of an answer must have, as a client specifies it. A plain
// value.
#pragma once

#include <string>
#include <vector>

namespace twill::config {

/// A JSON value between fixed texts: one way to call one tool.
struct framed_schema {
  std::string before;
  std::string schema; ///< JSON Schema of what stands between
  std::string after;
  bool operator==(const framed_schema&) const = default;
};

enum class grammar_kind {
  json_object, ///< any JSON object
  json_schema, ///< `text` is a JSON Schema
  regex,       ///< `text` is a regular expression of the whole answer
  choice,      ///< one of `choices`
  ebnf,        ///< `text` is a grammar in GBNF (llama.cpp) or XGrammar's EBNF; its start is `root`
  framed,      ///< one of `frames`, or several one after the other
};

struct grammar_spec {
  grammar_kind kind = grammar_kind::json_object;
  std::string text;
  std::vector<std::string> choices;
  /// For json_schema beside frames: objects have only the properties that the schema names.
  bool closed_objects = false;
  std::vector<framed_schema> frames;
  std::string list_begin, list_between, list_end; ///< framed: texts around and between the frames
  bool repeated = false;                          ///< framed: more than one frame may occur
  /// For the kind `framed`: between the texts `before` and `after` of a frame, the answer does not
  /// have a JSON object, but the object's members as the arguments of a function call: `key=value,
  /// ...)`, with JSON values and the closing parenthesis.
  bool as_arguments = false;

  bool operator==(const grammar_spec&) const = default;
};

} // namespace twill::config
