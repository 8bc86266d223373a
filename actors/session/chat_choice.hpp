// chat_choice: which of a model's chat templates a chat prompt is rendered with.
//
// Pure functions; any thread. The chosen template and answer format live as long as the model.
#pragma once

#include <string>

#include "actors/detail/served_model.hpp"
#include "actors/port/engine_port.hpp"

namespace twill::actors {

struct chosen_chat {
  const models::chat_template* chat = nullptr;
  const answer_format* answers = nullptr; ///< how answers to this template's prompts are read
};

/// The template that the prompt names, else the one for tools where the prompt has tools and the
/// model has such a template, else the default one. Fails with no_chat_template or invalid_argument
/// where the model has no template that fits.
result<chosen_chat> choose_chat(const served_model& model, const chat_prompt& prompt);

} // namespace twill::actors
