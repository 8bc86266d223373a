#include "models/text/message_form.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "config/base/json_text.hpp"
#include "models/checkpoint/json.hpp"

namespace twill::models {
namespace {

bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_call_message(const value& message) {
  const auto* calls = message.find("tool_calls");
  return calls != nullptr && calls->as_list() != nullptr && !calls->as_list()->empty();
}

/// Makes a conversation with one tool call. A template that supports tool calls prints the call.
value trial_messages(bool object_arguments, bool null_content) {
  const value arguments = value_object{{"needle", "thread"}};
  value_object function{{"name", "sew_it"},
                        {"arguments", object_arguments ? arguments : value(to_json(arguments))}};
  value_object call{{"id", "abcdefghi"}, {"type", "function"}, {"function", std::move(function)}};
  return value_list{
      value_object{{"role", "user"}, {"content", "u"}},
      value_object{{"role", "assistant"},
                   {"content", null_content ? value() : value("")},
                   {"tool_calls", value_list{value(std::move(call))}}},
      value_object{
          {"role", "tool"}, {"content", "r"}, {"tool_call_id", "abcdefghi"}, {"name", "sew_it"}}};
}

value trial_tools() {
  value_object parameters{{"type", "object"}, {"properties", value_object{}}};
  value_object function{
      {"name", "sew_it"}, {"description", "d"}, {"parameters", std::move(parameters)}};
  return value_list{value_object{{"type", "function"}, {"function", std::move(function)}}};
}

/// True if `id` has the form that mistral-common accepts. Such an id is not replaced.
bool is_short_id(const std::string& id) {
  return id.size() == 9 && std::all_of(id.begin(), id.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
         });
}

std::string short_id(const std::string& id) {
  if (is_short_id(id)) return id;
  static constexpr std::string_view letters =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::uint64_t hash = 0xcbf29ce484222325u; // FNV-1a
  for (const char c : id)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  std::string out;
  for (int i = 0; i < 9; ++i, hash /= letters.size())
    out += letters[hash % letters.size()];
  return out;
}

/// Parses `given` if it is the JSON text of an object. Returns any other value unchanged.
value open_arguments(const value& given) {
  const auto* text = given.as_string();
  if (text == nullptr) return given;
  auto parsed = parse_json(*text, "arguments");
  return parsed.ok() && parsed.value().as_object() != nullptr ? std::move(parsed).value() : given;
}

value fit_function(const value& function, const message_form& form) {
  if (function.as_object() == nullptr) return function;
  value_object fitted = *function.as_object();
  for (auto& [key, v] : fitted) {
    if (key != "arguments") continue;
    if (v.as_string() != nullptr && !form.text_arguments)
      v = open_arguments(v);
    else if (v.as_string() == nullptr && !form.object_arguments)
      v = to_json(v);
  }
  return fitted;
}

value fit_call(const value& call, const message_form& form) {
  if (call.as_object() == nullptr) return call;
  value_object fitted = *call.as_object();
  for (auto& [key, v] : fitted) {
    if (key == "function") v = fit_function(v, form);
    if (key == "id" && form.short_call_ids && v.as_string() != nullptr)
      v = short_id(*v.as_string());
  }
  return fitted;
}

/// Returns the message's tool calls as JSON text, for templates that ignore tool calls.
std::string written_calls(const value& message) {
  std::string text;
  for (const value& call : *message.find("tool_calls")->as_list()) {
    const auto* function = call.find("function");
    if (function == nullptr) continue;
    if (!text.empty()) text += '\n';
    text += to_json(fit_function(*function, {})); // with parsed arguments
  }
  return text;
}

value fit_content(const value& message, const value& content, const message_form& form) {
  const bool calls = is_call_message(message);
  if (calls && !form.shows_calls) {
    const auto* text = content.as_string();
    const std::string before = text == nullptr || text->empty() ? std::string() : *text + "\n";
    return before + written_calls(message);
  }
  if (content.is_null() && !(calls && form.null_content)) return "";
  return content;
}

value plain_message(const char* role, std::string content) {
  return value_object{{"role", role}, {"content", std::move(content)}};
}

std::string text_of(const value& message, std::string_view name) {
  const auto* found = message.find(name);
  return found != nullptr && found->as_string() != nullptr ? *found->as_string() : std::string();
}

/// False if the template fails on a message of this role, or prints the other messages without it.
bool knows_role(const try_template& render, const char* role, value_list before) {
  before.push_back(plain_message(role, "needle"));
  if (before.size() == 1) before.push_back(plain_message("user", "thread"));
  const auto text = render(before, value());
  return holds(text, "needle") || (!text.empty() && !holds(text, "thread"));
}

/// Appends `text` to the system message. If there is none, `text` becomes a new first message. But
/// if the template does not support the system role and the first message is from the user, `text`
/// goes before the text of that message.
void add_system_text(value_list& messages, const message_form& form, const std::string& text) {
  if (!messages.empty()) {
    const auto role = text_of(messages.front(), "role");
    const auto* content = messages.front().find("content");
    const bool system = role == "system" || role == "developer";
    const bool joins = system || (!form.knows_system && role == "user");
    if (joins && content != nullptr && content->as_string() != nullptr) {
      value_object joined = *messages.front().as_object();
      for (auto& [key, v] : joined)
        if (key == "content")
          v = system ? *v.as_string() + "\n\n" + text : text + "\n\n" + *v.as_string();
      messages.front() = std::move(joined);
      return;
    }
  }
  messages.insert(messages.begin(), plain_message(form.knows_system ? "system" : "user", text));
}

/// Turns results of tool calls into messages of the user, one message for all results of a turn.
void say_results(value_list& messages) {
  value_list said;
  bool in_results = false;
  for (value& message : messages) {
    if (text_of(message, "role") != "tool") {
      in_results = false;
      said.push_back(std::move(message));
      continue;
    }
    const auto name = text_of(message, "name");
    std::string text =
        (name.empty() ? "The function" : name) + " returned:\n" + text_of(message, "content");
    if (in_results) text = text_of(said.back(), "content") + "\n\n" + text;
    if (in_results) said.pop_back();
    said.push_back(plain_message("user", std::move(text)));
    in_results = true;
  }
  messages = std::move(said);
}

value fit_message(const value& message, const message_form& form) {
  if (message.as_object() == nullptr) return message;
  value_object fitted;
  fitted.reserve(message.as_object()->size());
  for (const auto& [key, v] : *message.as_object()) {
    if (key == "role" && v == value("developer") && !form.knows_developer) {
      fitted.emplace_back(key, "system");
    } else if (key == "content") {
      fitted.emplace_back(key, fit_content(message, v, form));
    } else if (key == "tool_calls" && v.as_list() != nullptr) {
      value_list calls;
      for (const value& call : *v.as_list())
        calls.push_back(fit_call(call, form));
      fitted.emplace_back(key, std::move(calls));
    } else if (key == "tool_call_id" && form.short_call_ids && v.as_string() != nullptr) {
      fitted.emplace_back(key, short_id(*v.as_string()));
    } else {
      fitted.emplace_back(key, v);
    }
  }
  return fitted;
}

} // namespace

message_form find_message_form(std::string_view template_source, const try_template& render) {
  message_form form;
  form.knows_developer = holds(template_source, "developer");
  form.short_call_ids = holds(template_source, "length 9") || holds(template_source, "length != 9");
  form.shows_tools = holds(template_source, "tools");
  if (!form.shows_tools) {
    form.knows_system = knows_role(render, "system", {});
    form.knows_tool_role = knows_role(
        render, "tool", {plain_message("user", "thread"), plain_message("assistant", "thread")});
  }
  if (!holds(template_source, "tool_calls")) {
    form.shows_calls = false;
    return form;
  }
  const value tools = trial_tools();
  // Empty content works with every template except those that test whether the content is null.
  for (const bool null_content : {false, true}) {
    const auto takes = [&](bool object_arguments) {
      const auto text = render(trial_messages(object_arguments, null_content), tools);
      return holds(text, "\"needle\":") && !holds(text, "None");
    };
    const bool objects = takes(true), texts = takes(false);
    if (!objects && !texts) continue;
    form.object_arguments = objects;
    form.text_arguments = texts;
    form.null_content = null_content;
    return form;
  }
  return form;
}

value fit_messages(const value& messages, const message_form& form, const std::string& tool_text) {
  if (messages.as_list() == nullptr) return messages;
  value_list fitted;
  fitted.reserve(messages.as_list()->size());
  for (const value& message : *messages.as_list())
    fitted.push_back(fit_message(message, form));
  if (!form.knows_tool_role) say_results(fitted);
  if (!form.shows_tools && !tool_text.empty()) add_system_text(fitted, form, tool_text);
  return fitted;
}

} // namespace twill::models
