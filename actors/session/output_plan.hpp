// output_plan: what a request wants of its output, as a grammar and a way to read it.
//
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/detail/served_model.hpp"
#include "actors/port/engine_port.hpp"
#include "models/text/tool_calls/parser.hpp"

namespace twill::actors {

struct output_plan {
  std::optional<config::grammar_spec> grammar; ///< what the output must look like
  std::string grammar_field;                   ///< the field of the request that asks for it
  bool is_json = false;                        ///< the grammar is one of JSON, or of calls in JSON
  bool with_markers = false; ///< the grammar holds control tokens as their text: all of `shown`
  models::tool_calls::parser_options reading; ///< meaningful with request::parse_output
  std::vector<std::int32_t> shown;            ///< control tokens whose text belongs to the output
  /// The grammar begins after the reasoning, which may begin with this token; -1: it may not.
  std::int32_t reasoning_begin_token = -1;
};

/// `prompt` is the text that the output follows.
result<output_plan> plan_output(const served_model& model, const request& asked,
                                std::string_view prompt);

/// Format and tags that a chat template tells of, which may be null; `tool_format` forces one
/// unless "auto".
answer_format find_answer_format(const models::tokenizer& text, const models::chat_template* chat,
                                 const std::string& tool_format);

/// Token sequences that spell `words`, at the beginning of a text and after a space.
result<std::vector<std::vector<std::int32_t>>>
tokens_of_words(const models::tokenizer& text, const std::vector<std::string>& words);

/// A bit for each of `n_tokens` tokens.
std::vector<std::uint32_t> mask_of(const std::vector<std::int32_t>& ids, std::int32_t n_tokens);

} // namespace twill::actors
