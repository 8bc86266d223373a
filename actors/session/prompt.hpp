// prompt: converts the prompt of a client into token ids, for the session actors and for the
// tokenizer calls of the engine_port.
//
// Pure functions over immutable models; any thread may call them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "actors/detail/served_model.hpp"
#include "actors/port/engine_port.hpp"

namespace twill::actors {

using prompt_variant = std::variant<text_prompt, token_prompt, chat_prompt>;

struct encoded_prompt {
  prompt_variant prompt;
  std::string written; ///< the text that the ids spell, if it is known
  result<std::vector<std::int32_t>> ids;
};

/// Encodes raw text. With `parse_special`, control tokens that are written in the text count as
/// control tokens, because the author of a raw prompt owns all of it. In a chat (encode_chat) they
/// count only where the template printed them, so that a message cannot forge them.
result<std::vector<std::int32_t>> encode_text(const served_model& model, const text_prompt& text,
                                              bool parse_special);
result<models::rendered_prompt> render_chat(const served_model& model, const chat_prompt& chat);
result<std::vector<std::int32_t>> encode_chat(const served_model& model, const chat_prompt& chat,
                                              std::string* written = nullptr);
/// `written` receives the text that the ids spell, if it is known.
result<std::vector<std::int32_t>> encode_prompt(const served_model& model,
                                                const prompt_variant& prompt,
                                                std::string* written = nullptr);
/// Encodes `answer.prompt` into `answer`. If the chat prompt asks for it
/// (chat_prompt::drop_turns_for_output), turns are left out first. If `to_context` is set, encoding
/// stops as soon as the prompt is known to exceed the context, which is an error. It also stops
/// once `is_unwanted` returns true; the answer is then meaningless.
void encode_prompt_within(const served_model& model, bool to_context,
                          std::function<bool()> is_unwanted, encoded_prompt& answer);

/// Visits every id of the vocabulary, which takes some milliseconds.
tokenizer_info describe_tokenizer(const models::model& model);

/// About how many bytes the prompt takes: the measure of text work.
std::int64_t prompt_bytes(const prompt_variant& prompt);

/// Fails if an id is not in the vocabulary, and names the first such id; `field` names the list in
/// the error.
result<nothing> check_ids(const served_model& model, const std::vector<std::int32_t>& ids,
                          const char* field);

} // namespace twill::actors
