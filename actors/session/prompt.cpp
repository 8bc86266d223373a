#include "actors/session/prompt.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "actors/session/chat_choice.hpp"
#include "actors/session/kept_turns.hpp"
#include "config/base/json_text.hpp"
#include "models/text/grammar/schema/check.hpp"
#include "models/text/text_limits.hpp"
#include "models/text/tool_calls/tool_text.hpp"

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

/// Refuses text that cannot fit the context before it is tokenized, since tokenizing takes time in
/// proportion to the text.
result<nothing> check_bytes(const served_model& model, std::size_t bytes) {
  if (bytes <= model.max_prompt_bytes) return nothing{};
  return failure{errc::context_too_long,
                 "`prompt` must be <= " + std::to_string(model.max_prompt_bytes) +
                     " bytes to fit the context limit of " +
                     std::to_string(model.max_context_tokens) + " tokens, got " +
                     std::to_string(bytes) + " bytes"};
}

/// About how many bytes a value takes in memory.
std::int64_t bytes_of(const value& v) {
  std::int64_t bytes = sizeof(value);
  if (const auto* text = v.as_string()) {
    bytes += static_cast<std::int64_t>(text->size());
  } else if (const auto* list = v.as_list()) {
    for (const value& item : *list)
      bytes += bytes_of(item);
  } else if (const auto* object = v.as_object()) {
    for (const auto& [name, member] : *object)
      bytes += static_cast<std::int64_t>(name.size() + sizeof name) + bytes_of(member);
  }
  return bytes;
}

/// The text of the last message; empty if the message has no text.
std::string_view last_text(const value& messages) {
  const auto* list = messages.as_list();
  const value* content = list == nullptr || list->empty() ? nullptr : list->back().find("content");
  return content == nullptr || content->as_string() == nullptr ? std::string_view()
                                                               : *content->as_string();
}

/// Checks the schemas of tools: a template prints any value as a schema, and an invalid one would
/// only mislead the model.
result<nothing> check_tools(const value& tools) {
  if (tools.as_list() == nullptr) return nothing{};
  for (const value& tool : *tools.as_list()) {
    const value* nested = tool.find("function");
    const value& function = nested != nullptr ? *nested : tool;
    const value* name = function.find("name");
    const value* parameters = function.find("parameters");
    if (name == nullptr || name->as_string() == nullptr || parameters == nullptr ||
        parameters->is_null())
      continue;
    if (const auto wrong = models::grammar::check_schema(to_json(*parameters)))
      return failure{errc::invalid_argument,
                     "`tools` must have valid JSON Schemas as `parameters`; those of \"" +
                         *name->as_string() + "\" are none: " + wrong->detail};
  }
  return nothing{};
}

/// Puts `before` in front of `ids`. Tokens that the tokenizer adds at the beginning of a text (such
/// as BOS) are already part of `before`, and are not repeated in the middle.
result<std::vector<std::int32_t>> joined(const served_model& model,
                                         const std::vector<std::int32_t>& before,
                                         std::vector<std::int32_t> ids) {
  if (before.empty()) return ids;
  if (const auto checked = check_ids(model, before, "context"); !checked.ok())
    return checked.error();
  const auto prefix = model.files->text->encode("", {.add_special = true});
  if (!prefix.ok()) return from_models(prefix.error());
  const auto begin =
      std::mismatch(ids.begin(), ids.end(), prefix.value().begin(), prefix.value().end()).first;
  std::vector<std::int32_t> all = before;
  all.insert(all.end(), begin, ids.end());
  return all;
}

std::int64_t bytes_of_ids(const std::vector<std::int32_t>& ids) {
  return static_cast<std::int64_t>(ids.size() * sizeof(std::int32_t));
}

} // namespace

std::int64_t prompt_bytes(const prompt_variant& prompt) {
  if (const auto* text = std::get_if<text_prompt>(&prompt))
    return static_cast<std::int64_t>(text->text.size()) + bytes_of_ids(text->before);
  if (const auto* chat = std::get_if<chat_prompt>(&prompt))
    return bytes_of(chat->messages) + bytes_of(chat->tools) +
           bytes_of(value(chat->template_arguments)) + bytes_of_ids(chat->before);
  return bytes_of_ids(std::get<token_prompt>(prompt));
}

result<std::vector<std::int32_t>> encode_text(const served_model& model, const text_prompt& text,
                                              bool parse_special) {
  if (auto fits = check_bytes(model, text.text.size()); !fits.ok()) return fits.error();
  auto ids = model.files->text->encode(text.text, {text.add_special, parse_special});
  if (!ids.ok()) return from_models(ids.error());
  return joined(model, text.before, std::move(ids).value());
}

result<models::rendered_prompt> render_chat(const served_model& model, const chat_prompt& chat) {
  const auto chosen = choose_chat(model, chat);
  if (!chosen.ok()) return chosen.error();
  const auto& [jinja, answers] = chosen.value();
  if (const auto checked = check_tools(chat.tools); !checked.ok()) return checked.error();
  models::template_input input;
  std::string tool_text;
  if (answers->calls) tool_text = models::tool_calls::tool_text(chat.tools, *answers->calls);
  input.messages = jinja->fit(chat.messages, tool_text);
  input.tools = chat.tools;
  input.add_generation_prompt = chat.add_generation_prompt && !chat.continue_last;
  input.extra = chat.template_arguments;
  input.now_unix_s = chat.now_unix_s;
  auto rendered = jinja->render(input);
  if (!rendered.ok()) return from_models(rendered.error());
  if (chat.continue_last && !models::cut_after(last_text(chat.messages), rendered.value()))
    return failure{errc::template_failed,
                   "`messages` must not end with a message of the assistant here, as the chat "
                   "template of the model \"" +
                       model.id + "\" does not show where such a message ends"};
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
  return joined(model, chat.before, std::move(ids).value());
}

tokenizer_info describe_tokenizer(const models::model& model) {
  const auto& text = *model.text;
  tokenizer_info info;
  info.kind = text.kind();
  info.bos_id = text.bos_id();
  info.eos_id = text.eos_id();
  const auto begun = text.encode("a", {.add_special = true});
  info.adds_bos = info.bos_id >= 0 && begun.ok() && !begun.value().empty() &&
                  begun.value().front() == info.bos_id;
  for (std::int32_t id = 0; id < text.vocab_size(); ++id)
    if (text.is_special(id)) info.special.push_back({id, text.token_bytes(id, true)});
  if (model.chat) info.chat_template = model.chat->source();
  return info;
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
encode_prompt(const served_model& model, const prompt_variant& prompt, std::string* written) {
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

namespace {

/// The most prompt tokens that a chat may have if turns of it may be left out.
std::size_t room_of(const served_model& model, const chat_prompt& chat) {
  const auto room = std::min<std::int64_t>(model.max_context_tokens, model.kv_tokens + 1) -
                    chat.drop_turns_for_output;
  return static_cast<std::size_t>(std::max<std::int64_t>(room, 0));
}

bool fits(const result<std::vector<std::int32_t>>& ids, std::size_t most) {
  // Any other error of a prompt does not go away when turns are left out.
  return ids.ok() ? ids.value().size() <= most : ids.code() != errc::context_too_long;
}

void drop_turns(const served_model& model, std::size_t most,
                const std::function<bool()>& is_unwanted, chat_prompt& chat) {
  const models::text_limits limits(most, is_unwanted);
  chat_prompt tried = chat;
  chat.messages = newest_turns(*chat.messages.as_list(), [&](value_list messages) {
    tried.messages = std::move(messages);
    return fits(encode_chat(model, tried), most);
  });
}

} // namespace

void encode_prompt_within(const served_model& model, bool to_context,
                          std::function<bool()> is_unwanted, encoded_prompt& answer) {
  const bool given_ids = std::holds_alternative<token_prompt>(answer.prompt);
  const std::size_t most = to_context && !given_ids
                               ? static_cast<std::size_t>(model.max_context_tokens)
                               : std::numeric_limits<std::size_t>::max();
  const models::text_limits limits(most, is_unwanted);
  answer.ids = encode_prompt(model, answer.prompt, &answer.written);
  auto* chat = std::get_if<chat_prompt>(&answer.prompt);
  if (chat != nullptr && chat->drop_turns_for_output >= 0 && chat->messages.as_list() != nullptr) {
    const std::size_t room = room_of(model, *chat);
    if (!fits(answer.ids, room)) {
      drop_turns(model, room, is_unwanted, *chat);
      answer.ids = encode_prompt(model, answer.prompt, &answer.written);
    }
  }
  if (answer.ids.ok() && answer.ids.value().size() > most)
    answer.ids = failure{errc::context_too_long, "the prompt must be < " + std::to_string(most) +
                                                     " tokens (the context limit), got at least " +
                                                     std::to_string(answer.ids.value().size())};
}

} // namespace twill::actors
