// From a prompt as a client gives it to token ids. Used by sessions and by the port's tokenizer
// calls.
//
// Pure functions over immutable models: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "actors/detail/served_model.hpp"
#include "actors/port/engine_port.hpp"

namespace twill::actors {

/// Control tokens written in a raw prompt are taken as such: its author owns the whole prompt. In a
/// chat they are recognised only where the template printed them.
result<std::vector<std::int32_t>> encode_text(const served_model& model, const text_prompt& text,
                                              bool parse_special);
result<models::rendered_prompt> render_chat(const served_model& model, const chat_prompt& chat);
result<std::vector<std::int32_t>> encode_chat(const served_model& model, const chat_prompt& chat);
result<std::vector<std::int32_t>>
encode_prompt(const served_model& model,
              const std::variant<text_prompt, token_prompt, chat_prompt>& prompt);

/// All ids within the vocabulary, or an error naming the first that is not.
result<nothing> check_ids(const served_model& model, const std::vector<std::int32_t>& ids,
                          const char* field);

} // namespace twill::actors
