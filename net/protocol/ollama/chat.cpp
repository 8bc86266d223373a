#include "net/protocol/ollama/chat.hpp"

#include <utility>

#include "net/protocol/json/fields.hpp"
#include "net/protocol/json/members.hpp"
#include "net/protocol/ollama/messages.hpp"
#include "net/protocol/ollama/request.hpp"
#include "net/protocol/tool_fields.hpp"

namespace twill::net {
namespace {

/// Reads `tools`, whose entries need no `type`, because there is only the type "function".
void read_ollama_tools(fields& from, actors::request& to, actors::chat_prompt& prompt) {
  const auto* given = from.find("tools");
  if (!from.ok()) return;
  value typed = given == nullptr ? value(value_list{}) : *given;
  if (const auto* list = typed.as_list(); list != nullptr && list->size() <= max_tools) {
    value_list with_types;
    for (const auto& tool : *list) {
      if (tool.as_object() == nullptr || member(tool, "type") != nullptr ||
          member(tool, "function") == nullptr) {
        with_types.push_back(tool);
        continue;
      }
      value_object one{{"type", "function"}};
      for (const auto& [key, v] : *tool.as_object())
        if (key != "type") one.emplace_back(key, v);
      with_types.emplace_back(std::move(one));
    }
    typed = std::move(with_types);
  }
  auto tools = read_tool_list(from, "tools", typed);
  if (const auto* choice = from.find("tool_choice"); choice != nullptr && from.ok())
    read_tool_choice(from, "tool_choice", *choice, tools, to.tools);
  if (!from.ok() || tools.as_list() == nullptr || tools.as_list()->empty()) return;
  if (to.tools.kind != actors::tool_choice_kind::none) prompt.tools = std::move(tools);
}

} // namespace

field_rows ollama_chat_rows() {
  field_rows rows{
      {"messages", R"("type":"array","items":{"type":"object"})",
       "The conversation. None: the model is loaded, and nothing else."},
      {"tools", R"("type":"array","maxItems":128,"items":{"type":"object"})",
       "Functions that the answer may call."},
      {"tool_choice", R"("type":["string","object"])", "As in OpenAI's chats; Ollama has none."},
      {"template", schema::any, "absent, as this server takes no templates from requests",
       field_use::refused}};
  add_ollama_rows(rows);
  return rows;
}

result<call> parse_ollama_chat(const value& body, const codec_context& context) {
  fields from(body);
  auto asked = read_ollama_call(from, context);
  asked.reply.chat = true;
  actors::chat_prompt prompt;
  auto messages = read_ollama_messages(from);
  read_ollama_tools(from, asked.request, prompt);
  if (const auto* given = from.find("template"); given != nullptr && *given != value(""))
    from.reject("template", "absent, as this server takes no templates from requests", *given);
  if (!from.ok()) return fail(from.error());
  if (messages.empty()) return load_or_unload(std::move(asked));

  prompt.messages = std::move(messages);
  prompt.template_arguments = std::move(asked.template_arguments);
  prompt.drop_turns_for_output = asked.room;
  asked.request.prompt = std::move(prompt);
  asked.request.parse_output = true;
  call generation;
  generation.stream = asked.reply.stream;
  generation.requests.push_back(std::move(asked.request));
  generation.encoder = std::make_unique<ollama_reply>(std::move(asked.reply));
  return generation;
}

} // namespace twill::net
