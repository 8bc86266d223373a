#include "actors/session/chat_choice.hpp"

#include <cstddef>

#include "models/text/template_sources.hpp"

namespace twill::actors {
namespace {

/// The names of the model's templates, for messages.
std::string names_of(const models::model& files) {
  std::string names = files.chat ? models::default_template_name : "";
  for (const auto& other : files.other_chats)
    names += (names.empty() ? "" : ", ") + other.name;
  return names;
}

} // namespace

result<chosen_chat> choose_chat(const served_model& model, const chat_prompt& prompt) {
  const models::model& files = *model.files;
  const auto named = [&](const std::string& name) -> chosen_chat {
    for (std::size_t i = 0; i < files.other_chats.size() && i < model.other_answers.size(); ++i)
      if (files.other_chats[i].name == name)
        return {files.other_chats[i].chat.get(), &model.other_answers[i]};
    return {};
  };
  const chosen_chat by_default{files.chat.get(), &model.answers};
  if (!prompt.template_name.empty() && prompt.template_name != models::default_template_name) {
    if (const auto found = named(prompt.template_name); found.chat != nullptr) return found;
    const std::string names = names_of(files);
    return failure{errc::invalid_argument,
                   "`chat_template` must be the name of a template of the model (" +
                       (names.empty() ? "it has none" : names) + "), got \"" +
                       prompt.template_name + "\""};
  }
  const bool has_tools = prompt.tools.as_list() != nullptr && !prompt.tools.as_list()->empty();
  if (has_tools && prompt.template_name.empty())
    if (const auto found = named(models::tool_template_name); found.chat != nullptr) return found;
  if (by_default.chat != nullptr) return by_default;
  if (files.other_chats.empty())
    return failure{errc::no_chat_template,
                   "`model` must have a chat template, got \"" + model.id + "\""};
  return failure{errc::no_chat_template, "`chat_template` must name a template, as the model \"" +
                                             model.id + "\" has no default one, only " +
                                             names_of(files)};
}

} // namespace twill::actors
