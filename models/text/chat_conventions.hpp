// chat_conventions: the chat template of a model, else the one that its family is known by.
//
// Jinja sources for chat_template::parse(). Known ones print cut marks where the families' own code
// encodes pieces of a prompt apart, so ids come out equal to theirs. Pure but for reading the
// folder; any thread.
#pragma once

#include <string>

#include "config/base/value.hpp"
#include "models/text/tokenizer.hpp"

namespace twill::models {

/// The known convention of `family`: ChatGLM3's roles, Baichuan2's role tokens (ids from
/// generation_config.json when it names them), ChatML with Qwen v1's default system message, ChatML
/// for vocabularies that have its tokens (OpenOrca), [INST] for Mistral. Empty: there is none.
std::string known_chat_template(const std::string& family, const value& config,
                                const tokenizer& text, const value* generation_config = nullptr);

/// The known convention of a GGUF file that brings none: those of Qwen v1, ChatGLM3 and Baichuan2,
/// where the vocabulary has their tokens. Empty: there is none.
std::string known_gguf_chat_template(const std::string& family, const tokenizer& text);

/// What the folder brings: chat_template.jinja, else tokenizer_config.json's `chat_template` (of
/// several the one named "default"). Empty: none, or larger than a template may be.
std::string folder_chat_template(const std::string& folder, const value* tokenizer_config);

} // namespace twill::models
