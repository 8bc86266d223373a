// lexer: cuts a template's source into tokens, with Jinja2's whitespace rules as Hugging Face sets
// them (trim_blocks and lstrip_blocks on, one trailing newline dropped).
//
// Pure function; throws template_error with the line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace twill::models::jinja {

enum class token_kind {
  data,           ///< text between tags, whitespace control applied
  block_begin,    ///< {%
  block_end,      ///< %}
  variable_begin, ///< {{
  variable_end,   ///< }}
  name,
  string,  ///< text: the value, escapes decoded
  integer, ///< text: decimal digits
  floating,
  op, ///< text: the operator or bracket
  end,
};

struct token {
  token_kind kind;
  std::string text;
  int line;

  bool is_op(std::string_view s) const { return kind == token_kind::op && text == s; }
  bool is_name(std::string_view s) const { return kind == token_kind::name && text == s; }
};

/// The tokens of `source`; the last is an `end` token.
std::vector<token> tokenize(std::string_view source);

} // namespace twill::models::jinja
