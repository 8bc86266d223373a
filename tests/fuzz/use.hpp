// Exercises a tokenizer and a chat template that were opened, with texts and ids of every sort.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/text/chat_template.hpp"
#include "models/text/tokenizer.hpp"

namespace twill::fuzz {

/// Encodes a text in several writing systems, with and without special tokens, and decodes the
/// result and every id.
inline void use_tokenizer(const models::tokenizer& text) {
  const std::string given = " Hello  w\xC3\xB6rld 123\n\xE4\xBD\xA0<|im_start|>user</s>[gMASK]sop "
                            "e\xCC\x81\xEF\xBC\xA1 don't <unk>\t\xF0\x9F\x98\x80";
  std::vector<models::token_id> ids;
  for (const bool special : {false, true})
    if (auto encoded = text.encode(given, {special, special}); encoded.ok()) {
      ids = std::move(encoded).value();
      text.decode(ids, special);
    }
  if (auto prompt = text.encode_prompt(given, {{3, 9}, {12, 12}, {12, 30}}); prompt.ok())
    text.decode(prompt.value(), false);
  for (models::token_id id = -2; id < text.vocab_size() + 2; ++id)
    ids.push_back(id);
  text.decode(ids, true);
}

/// Renders a chat and, given a tokenizer, encodes the rendered text.
inline void use_template(const models::chat_template& chat, const models::tokenizer* text) {
  const auto says = [](const char* role, const char* content) {
    return value(value_object{{"role", value(role)}, {"content", value(content)}});
  };
  models::template_input input;
  input.messages = value_list{says("system", "be \xEF\xB7\x90 kind"), says("user", "hi </s>"),
                              says("assistant", "\n"), says("user", "<|im_end|>")};
  const auto rendered = chat.render(input);
  if (!rendered.ok() || text == nullptr) return;
  if (auto ids = text->encode_prompt(rendered.value().text, rendered.value().literal); ids.ok())
    text->decode(ids.value(), false);
}

} // namespace twill::fuzz
