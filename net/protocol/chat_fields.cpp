#include "net/protocol/chat_fields.hpp"

#include "net/protocol/json/json_parse.hpp"

namespace twill::net {
namespace {

bool is_text_part(const std::string& type) {
  return type == "text" || type == "input_text" || type == "output_text" || type == "refusal";
}

/// Templates index into arguments, so the JSON inside the string is opened.
value open_arguments(const value& tool_call) {
  const auto* call = tool_call.as_object();
  if (call == nullptr) return tool_call;
  value_object opened = *call;
  for (auto& [name, member] : opened) {
    if (name != "function" || member.as_object() == nullptr) continue;
    value_object function = *member.as_object();
    for (auto& [key, argument] : function)
      if (const auto* text = argument.as_string(); key == "arguments" && text != nullptr)
        if (auto parsed = parse_json(*text); parsed.ok() && parsed.value().as_object() != nullptr)
          argument = std::move(parsed).value();
    member = std::move(function);
  }
  return opened;
}

value read_message(fields& from, const std::string& name, const value& message) {
  const auto* object = message.as_object();
  if (object == nullptr) {
    from.reject(name, "an object", message);
    return {};
  }
  const auto* role = message.find("role");
  if (role == nullptr || role->as_string() == nullptr || role->as_string()->empty()) {
    from.reject(name + ".role", "a role such as \"user\"", role == nullptr ? value() : *role);
    return {};
  }
  const auto* content = message.find("content");
  const bool may_lack_content = *role->as_string() == "assistant";
  if ((content == nullptr || content->is_null()) && !may_lack_content) {
    from.reject(name + ".content", "a string or a list of text parts", value());
    return {};
  }
  value_object read;
  read.reserve(object->size());
  for (const auto& [key, member] : *object) {
    if (key == "content" && !member.is_null()) {
      read.emplace_back(key, read_content(from, name + ".content", member));
    } else if (key == "tool_calls" && member.as_list() != nullptr) {
      value_list calls;
      for (const auto& call : *member.as_list())
        calls.push_back(open_arguments(call));
      read.emplace_back(key, std::move(calls));
    } else {
      read.emplace_back(key, member);
    }
  }
  if (content == nullptr) read.emplace_back("content", nullptr);
  return value(std::move(read));
}

} // namespace

value make_message(std::string role, std::string content) {
  return value_object{{"role", std::move(role)}, {"content", std::move(content)}};
}

std::string read_content(fields& from, const std::string& name, const value& content) {
  if (const auto* text = content.as_string()) return *text;
  const auto* parts = content.as_list();
  if (parts == nullptr) {
    from.reject(name, "a string or a list of text parts", content);
    return {};
  }
  std::string joined;
  for (std::size_t i = 0; i < parts->size(); ++i) {
    const auto& part = (*parts)[i];
    const std::string at = name + "[" + std::to_string(i) + "]";
    const auto* type = part.find("type");
    const auto* text = part.find("text");
    if (text == nullptr) text = part.find("refusal");
    if (type != nullptr && (type->as_string() == nullptr || !is_text_part(*type->as_string()))) {
      from.reject(at + ".type", "\"text\"", *type);
      return {};
    }
    if (text == nullptr || text->as_string() == nullptr) {
      from.reject(at + ".text", "a string", text == nullptr ? value() : *text);
      return {};
    }
    if (i > 0) joined += '\n';
    joined += *text->as_string();
  }
  return joined;
}

void read_chat_prompt(fields& from, actors::chat_prompt& to) {
  from.require("messages");
  if (!from.ok()) return;
  const auto& messages = *from.find("messages");
  const auto* list = messages.as_list();
  if (list == nullptr || list->empty())
    return from.reject("messages", "a list of at least one message", messages);
  value_list read;
  read.reserve(list->size());
  for (std::size_t i = 0; i < list->size() && from.ok(); ++i)
    read.push_back(read_message(from, "messages[" + std::to_string(i) + "]", (*list)[i]));
  to.messages = std::move(read);

  bool use_tools = true;
  if (const auto* choice = from.find("tool_choice")) {
    use_tools = *choice != value("none");
    if (use_tools && *choice != value("auto"))
      from.reject("tool_choice", "\"auto\" or \"none\"", *choice);
  }
  if (const auto* tools = from.find("tools")) {
    if (tools->as_list() == nullptr) return from.reject("tools", "a list of tools", *tools);
    if (use_tools && !tools->as_list()->empty()) to.tools = *tools;
  }
  from.read("add_generation_prompt", to.add_generation_prompt);
  if (const auto* arguments = from.object("chat_template_kwargs"))
    to.template_arguments = *arguments->as_object();
}

} // namespace twill::net
