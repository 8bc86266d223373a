#include "net/protocol/chat_fields.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "net/protocol/json/members.hpp"

namespace twill::net {
namespace {

constexpr std::array<std::string_view, 6> roles = {"system",    "developer", "user",
                                                   "assistant", "tool",      "function"};
constexpr std::string_view legacy_call_id = "call_function";

bool is_text_part(const std::string& type) {
  return type == "text" || type == "input_text" || type == "output_text" || type == "refusal";
}

/// Reads {"name", "arguments"} of a tool call that an earlier answer made.
value read_call(fields& from, const std::string& at, const value& function, std::string id) {
  const auto* name = member(function, "name");
  if (name == nullptr || name->as_string() == nullptr || name->as_string()->empty()) {
    from.reject(at + ".name", "the name of a function", name == nullptr ? value() : *name);
    return {};
  }
  const auto* arguments = member(function, "arguments");
  if (arguments != nullptr && arguments->as_string() == nullptr &&
      arguments->as_object() == nullptr) {
    from.reject(at + ".arguments", "a JSON text or an object", *arguments);
    return {};
  }
  return make_tool_call(std::move(id), *name->as_string(),
                        arguments == nullptr ? value() : *arguments);
}

value_list read_calls(fields& from, const std::string& at, const value& calls) {
  value_list read;
  const auto* list = calls.as_list();
  if (list == nullptr) {
    from.reject(at, "a list of tool calls", calls);
    return read;
  }
  for (std::size_t i = 0; i < list->size() && from.ok(); ++i) {
    const auto& call = (*list)[i];
    const auto name = at + "[" + std::to_string(i) + "]";
    const auto* function = member(call, "function");
    if (function == nullptr || function->as_object() == nullptr) {
      from.reject(name + ".function", "an object", function == nullptr ? value() : *function);
      return read;
    }
    read.push_back(read_call(from, name + ".function", *function, text_of(member(call, "id"))));
  }
  return read;
}

/// True for members of a client's message that are copied unchanged to the converted message. Null
/// members are dropped; the members in `replaced` are converted separately.
bool is_kept(const std::string& key, const value& v) {
  static constexpr std::array<std::string_view, 6> replaced = {
      "role", "content", "tool_calls", "function_call", "refusal", "audio"};
  return !v.is_null() && std::find(replaced.begin(), replaced.end(), key) == replaced.end();
}

value read_message_content(fields& from, const std::string& name, const value& message,
                           bool may_lack) {
  const auto* content = member(message, "content");
  if (content == nullptr) content = member(message, "refusal");
  if (content != nullptr) return read_content(from, name + ".content", *content);
  if (!may_lack) from.reject(name + ".content", "a string or a list of text parts", value());
  return {};
}

} // namespace

value read_chat_message(fields& from, const std::string& name, const value& message) {
  if (message.as_object() == nullptr) {
    from.reject(name, "an object", message);
    return {};
  }
  const auto* given = member(message, "role");
  const std::string role = text_of(given);
  if (std::find(roles.begin(), roles.end(), role) == roles.end()) {
    from.reject(name + ".role",
                R"("system", "developer", "user", "assistant", "tool" or "function")",
                given == nullptr ? value() : *given);
    return {};
  }
  value_list calls;
  if (role == "assistant") {
    if (const auto* made = member(message, "tool_calls"))
      calls = read_calls(from, name + ".tool_calls", *made);
    if (const auto* made = member(message, "function_call"))
      calls.push_back(read_call(from, name + ".function_call", *made, std::string(legacy_call_id)));
  }
  value_object read{{"role", role == "function" ? std::string("tool") : role}};
  read.emplace_back("content", read_message_content(from, name, message, role == "assistant"));
  if (!calls.empty()) read.emplace_back("tool_calls", std::move(calls));
  if (role == "function") read.emplace_back("tool_call_id", std::string(legacy_call_id));
  for (const auto& [key, v] : *message.as_object())
    if (is_kept(key, v)) read.emplace_back(key, v);
  return read;
}

value make_message(std::string role, std::string content) {
  return value_object{{"role", std::move(role)}, {"content", std::move(content)}};
}

value make_tool_call(std::string id, std::string name, const value& arguments) {
  const bool none = arguments.is_null() || arguments == value("");
  value_object function{{"name", std::move(name)},
                        {"arguments", none ? value(value_object{}) : arguments}};
  return value_object{
      {"id", std::move(id)}, {"type", "function"}, {"function", std::move(function)}};
}

void name_tool_results(value_list& messages) {
  std::map<std::string, std::string> names;
  for (auto& message : messages) {
    if (const auto* calls = message.find("tool_calls"); calls != nullptr && calls->as_list())
      for (const auto& call : *calls->as_list())
        if (const auto* function = call.find("function"))
          names[text_of(call.find("id"))] = text_of(function->find("name"));
    if (text_of(message.find("role")) != "tool" || member(message, "name") != nullptr) continue;
    const auto found = names.find(text_of(message.find("tool_call_id")));
    if (found == names.end()) continue;
    value_object named = *message.as_object();
    named.emplace_back("name", found->second);
    message = std::move(named);
  }
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
    if (part.as_object() == nullptr) {
      from.reject(at, "a text part, an object with `type` and `text`", part);
      return {};
    }
    const auto* type = part.find("type");
    const auto* text = part.find("text");
    if (text == nullptr) text = part.find("refusal");
    if (type != nullptr && (type->as_string() == nullptr || !is_text_part(*type->as_string()))) {
      from.reject(at + ".type", "\"text\", as no model here reads images, sound or files", *type);
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

namespace {

constexpr field_row messages_row{
    "messages",
    R"("type":"array","minItems":1,"items":{"type":"object","properties":{"role":{"enum":["system",)"
    R"("developer","user","assistant","tool","function"]},"content":{"type":["string","array",)"
    R"("null"]}},"required":["role"]})",
    "The conversation. Parts of a content must be text.", field_use::honoured, true};
constexpr std::array answer_rows = {
    field_row{"add_generation_prompt", schema::boolean,
              "The template begins the answer (the default)."},
    field_row{"continue_final_message", schema::boolean,
              "The answer goes on from the text of the last message, which must be the "
              "assistant's and have no tool calls; the reply has what follows. The template begins "
              "no other answer. A format that the answer must have holds for what follows alone."}};

/// vLLM requires clients to send `add_generation_prompt` as false beside `continue_final_message`.
/// Here `add_generation_prompt` may also be absent, and then counts as false.
void read_continuation(fields& from, actors::chat_prompt& to) {
  constexpr std::string_view field = "continue_final_message";
  from.read(field, to.continue_last);
  if (!from.ok() || !to.continue_last) return;
  if (const auto* begins = from.find("add_generation_prompt");
      begins != nullptr && to.add_generation_prompt)
    return from.reject(field, "false or absent where `add_generation_prompt` is true", value(true));
  const auto& last = to.messages.as_list()->back();
  const bool has_text =
      text_of(last.find("content")).find_first_not_of(" \t\r\n") != std::string::npos;
  if (text_of(last.find("role")) != "assistant" || member(last, "tool_calls") != nullptr ||
      !has_text)
    from.reject(field,
                "false or absent, unless the last of `messages` is the assistant's, with a text "
                "beyond white space and no tool calls",
                value(true));
}
constexpr std::array template_rows = {
    field_row{"chat_template", R"("type":"string","maxLength":64)",
              "The name of one of the model's templates."},
    field_row{"chat_template_kwargs", schema::object,
              "Arguments of the template, such as `enable_thinking`."}};

} // namespace

void add_template_rows(field_rows& to) {
  add_rows(to, template_rows);
}

void add_message_rows(field_rows& to) {
  to.push_back(messages_row);
  add_rows(to, answer_rows);
  add_template_rows(to);
}

void add_chat_prompt_rows(field_rows& to) {
  add_message_rows(to);
  add_tool_rows(to);
}

void read_template_fields(fields& from, actors::chat_prompt& to) {
  constexpr std::size_t longest_name = 64;
  constexpr std::string_view named =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  from.read("chat_template", to.template_name);
  if (to.template_name.size() > longest_name ||
      to.template_name.find_first_not_of(named) != std::string::npos)
    from.reject("chat_template",
                "the name of one of the model's templates, as this server takes no templates from "
                "requests",
                value(to.template_name));
  if (const auto* arguments = from.object("chat_template_kwargs"))
    to.template_arguments = *arguments->as_object();
}

void read_messages(fields& from, actors::chat_prompt& to) {
  from.require("messages");
  if (!from.ok()) return;
  const auto& messages = *from.find("messages");
  const auto* list = messages.as_list();
  if (list == nullptr || list->empty()) {
    from.reject("messages", "a list of at least one message", messages);
    return;
  }
  value_list read;
  read.reserve(list->size());
  for (std::size_t i = 0; i < list->size() && from.ok(); ++i)
    read.push_back(read_chat_message(from, "messages[" + std::to_string(i) + "]", (*list)[i]));
  if (from.ok()) name_tool_results(read);
  to.messages = std::move(read);
  from.read("add_generation_prompt", to.add_generation_prompt);
  read_continuation(from, to);
  read_template_fields(from, to);
}

tool_fields read_chat_prompt(fields& from, actors::chat_prompt& to) {
  read_messages(from, to);
  if (!from.ok()) return {};
  auto tools = read_tools(from);
  to.tools = tools.tools;
  return tools;
}

} // namespace twill::net
