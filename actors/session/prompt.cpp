#include "actors/session/prompt.hpp"

#include <cstddef>

namespace twill::actors {

namespace {

failure<errc> from_models(const models::failure& error) {
  switch (error.code) {
  case models::errc::template_failed:
  case models::errc::bad_template:
    return {errc::template_failed, error.detail};
  default:
    return {errc::invalid_argument, error.detail};
  }
}

/// Tokenizing takes time in proportion to the text, so text that cannot fit is refused before it.
result<nothing> check_bytes(const served_model& model, std::size_t bytes) {
  if (bytes <= model.max_prompt_bytes) return nothing{};
  return failure{errc::context_too_long,
                 "`prompt` must be <= " + std::to_string(model.max_prompt_bytes) +
                     " bytes to fit the context limit of " +
                     std::to_string(model.max_context_tokens) + " tokens, got " +
                     std::to_string(bytes) + " bytes"};
}

} // namespace

result<std::vector<std::int32_t>> encode_text(const served_model& model, const text_prompt& text,
                                              bool parse_special) {
  if (auto fits = check_bytes(model, text.text.size()); !fits.ok()) return fits.error();
  auto ids = model.files->text->encode(text.text, {text.add_special, parse_special});
  if (!ids.ok()) return from_models(ids.error());
  return std::move(ids).value();
}

result<models::rendered_prompt> render_chat(const served_model& model, const chat_prompt& chat) {
  if (!model.files->chat)
    return failure{errc::no_chat_template,
                   "`model` must have a chat template, got \"" + model.id + "\""};
  models::template_input input;
  input.messages = model.files->chat->fit(chat.messages);
  input.tools = chat.tools;
  input.add_generation_prompt = chat.add_generation_prompt;
  input.extra = chat.template_arguments;
  auto rendered = model.files->chat->render(input);
  if (!rendered.ok()) return from_models(rendered.error());
  return std::move(rendered).value();
}

result<std::vector<std::int32_t>> encode_chat(const served_model& model, const chat_prompt& chat,
                                              std::string* written) {
  const auto rendered = render_chat(model, chat);
  if (!rendered.ok()) return rendered.error();
  if (auto fits = check_bytes(model, rendered.value().text.size()); !fits.ok()) return fits.error();
  auto ids = model.files->text->encode_prompt(rendered.value().text, rendered.value().literal);
  if (!ids.ok()) return from_models(ids.error());
  if (written != nullptr) *written = rendered.value().text;
  return std::move(ids).value();
}

result<nothing> check_ids(const served_model& model, const std::vector<std::int32_t>& ids,
                          const char* field) {
  const std::int32_t vocab = model.files->text->vocab_size();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab)
      return failure{errc::invalid_argument, "`" + std::string(field) + "[" + std::to_string(i) +
                                                 "]` must be in [0, " + std::to_string(vocab) +
                                                 "), got " + std::to_string(ids[i])};
  }
  return nothing{};
}

result<std::vector<std::int32_t>>
encode_prompt(const served_model& model,
              const std::variant<text_prompt, token_prompt, chat_prompt>& prompt,
              std::string* written) {
  if (const auto* text = std::get_if<text_prompt>(&prompt)) {
    if (written != nullptr) *written = text->text;
    return encode_text(model, *text, true);
  }
  if (const auto* chat = std::get_if<chat_prompt>(&prompt))
    return encode_chat(model, *chat, written);
  const auto& ids = std::get<token_prompt>(prompt);
  if (const auto checked = check_ids(model, ids, "prompt"); !checked.ok()) return checked.error();
  return ids;
}

} // namespace twill::actors
