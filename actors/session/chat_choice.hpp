// chat_choice: chooses the chat template of a model with which a chat prompt is rendered.
//
// Pure functions, which any thread may call. The chosen template and answer format live as long as
// the model.
#pragma once

#include <string>

#include "actors/detail/served_model.hpp"
#include "actors/port/engine_port.hpp"

namespace twill::actors {

struct chosen_chat {
  const models::chat_template* chat = nullptr;
  const answer_format* answers = nullptr; ///< how answers to this template's prompts are read
};

/// Returns the template that the prompt names. If the prompt names none: the template for tools if
/// the prompt has tools and the model has such a template, else the default template. Fails with
/// no_chat_template or invalid_argument if the model has no template that fits.
result<chosen_chat> choose_chat(const served_model& model, const chat_prompt& prompt);

} // namespace twill::actors
