// The format that the output of a request must have (grammar, tool calls), and the tokens that may
// follow a given output. Both are computed from scratch for each token.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/grammar_spec.hpp"
#include "models/text/grammar/compiled_grammar.hpp"
#include "models/text/tool_calls/parser.hpp"
#include "tests/actors/meaning/small_models.hpp"

namespace twill::test {

struct plain_form {
  std::optional<config::grammar_spec> grammar;
  bool with_markers = false;                  ///< the grammar contains control tokens as text
  models::tool_calls::parser_options reading; ///< how an output in parts is parsed
  std::vector<std::int32_t> shown;            ///< control tokens that are shown as text
  std::int32_t begin_token = -1; ///< may begin the output; reasoning then precedes the grammar
  bool one_call = false;         ///< if there are several calls, only the first is allowed
};

/// `written` is the text of the prompt, empty where it is given as tokens.
plain_form form_of(const small_model& model, const actors::request& asked,
                   const std::string& written);

/// The tokens that may follow.
struct next_tokens {
  std::vector<std::uint32_t> mask;
  bool over = false; ///< no token may follow, and there is no mask
};

class form_reader {
public:
  explicit form_reader(const small_model& model) : files_(*model.files) {}

  /// The tokens that may follow `output`. `form`, the required format of the output, must have a
  /// grammar. Throws `broken` if `output` violates the grammar.
  next_tokens after(const plain_form& form, const std::vector<std::int32_t>& output);

private:
  const models::grammar::vocabulary_ptr& tokens_of(const plain_form& form);
  models::grammar::compiled_grammar_ptr compile(const plain_form& form);

  const models::model& files_;
  models::grammar::vocabulary_ptr plain_;
  std::map<std::vector<std::int32_t>, models::grammar::vocabulary_ptr> marked_; ///< by markers
  std::map<std::pair<std::string, bool>, models::grammar::compiled_grammar_ptr> compiled_;
};

} // namespace twill::test
