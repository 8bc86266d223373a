// output_plan: what a request asks of its output, as a grammar and a way to parse the output.
//
// Pure functions, which any thread may call.
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
  /// the grammar that the output must follow; none: any output is allowed
  std::optional<config::grammar_spec> grammar;
  std::string grammar_field; ///< the request's field that asks for the grammar
  bool is_json = false;      ///< the grammar describes JSON, or calls in JSON
  bool with_markers = false; ///< the grammar treats all control tokens in `shown` as their text
  models::tool_calls::parser_options reading; ///< meaningful with request::parse_output
  std::vector<std::int32_t> shown;            ///< control tokens whose text belongs to the output
  /// The grammar applies after the reasoning. This token is allowed as the first of the output, to
  /// begin reasoning; -1: the grammar does not let an output begin reasoning.
  std::int32_t reasoning_begin_token = -1;
};

/// Derives the plan of a request's output. `prompt` is the text that precedes the output.
result<output_plan> plan_output(const served_model& model, const request& asked,
                                std::string_view prompt);

/// Finds out how answers of a chat template mark tool calls and reasoning; `chat` may be null.
/// `tool_format` forces a format unless it is "auto".
answer_format find_answer_format(const models::tokenizer& text, const models::chat_template* chat,
                                 const std::string& tool_format);

/// Returns the token sequences that spell the request's banned words, both at the beginning of a
/// text and after a space.
result<std::vector<std::vector<std::int32_t>>>
tokens_of_words(const models::tokenizer& text, const std::vector<std::string>& words);

/// Returns a bitmap of `n_tokens` bits in which the bits of `ids` are set.
std::vector<std::uint32_t> mask_of(const std::vector<std::int32_t>& ids, std::int32_t n_tokens);

} // namespace twill::actors
