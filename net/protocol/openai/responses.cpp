#include "net/protocol/openai/responses.hpp"

#include "net/protocol/chat_fields.hpp"
#include "net/protocol/json/fields.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/protocol/sampling_fields.hpp"

namespace twill::net {
namespace {

std::string text_of(const value* v) {
  return v != nullptr && v->as_string() != nullptr ? *v->as_string() : std::string();
}

/// A function call of an earlier turn becomes the assistant message that made it.
value make_tool_call(const value& item) {
  const auto* arguments = item.find("arguments");
  value_object function{{"name", text_of(item.find("name"))},
                        {"arguments", arguments == nullptr ? value() : *arguments}};
  value_object tool_call{{"id", text_of(item.find("call_id"))},
                         {"type", "function"},
                         {"function", std::move(function)}};
  return value_object{{"role", "assistant"},
                      {"content", nullptr},
                      {"tool_calls", value_list{value(std::move(tool_call))}}};
}

void read_message_item(fields& from, const std::string& at, const value& item, value_list& to) {
  const auto* role = item.find("role");
  const auto* content = item.find("content");
  if (role == nullptr || role->as_string() == nullptr)
    return from.reject(at + ".role", "a role such as \"user\"", role == nullptr ? value() : *role);
  if (content == nullptr || content->is_null())
    return from.reject(at + ".content", "a string or a list of text parts", value());
  const auto& given = *role->as_string();
  to.push_back(make_message(given == "developer" ? "system" : given,
                            read_content(from, at + ".content", *content)));
}

void read_item(fields& from, const std::string& at, const value& item, value_list& to) {
  if (item.as_object() == nullptr) return from.reject(at, "an object", item);
  const auto* type = item.find("type");
  const std::string kind = type == nullptr ? "message" : text_of(type);
  if (kind == "message") return read_message_item(from, at, item, to);
  if (kind == "reasoning") return; // nothing of it goes back into a prompt
  if (kind == "function_call") return to.push_back(make_tool_call(item));
  if (kind == "function_call_output") {
    const auto* output = item.find("output");
    if (output == nullptr) return from.reject(at + ".output", "given", value());
    value_object message{{"role", "tool"},
                         {"tool_call_id", text_of(item.find("call_id"))},
                         {"content", read_content(from, at + ".output", *output)}};
    return to.push_back(std::move(message));
  }
  from.reject(at + ".type",
              "\"message\", \"function_call\", \"function_call_output\" or \"reasoning\"",
              type == nullptr ? value() : *type);
}

void read_input(fields& from, bool required, value_list& to) {
  const auto* input = from.find("input");
  if (input == nullptr) {
    if (required) from.require("input");
    return;
  }
  if (const auto* text = input->as_string()) return to.push_back(make_message("user", *text));
  const auto* items = input->as_list();
  if (items == nullptr) return from.reject("input", "a string or a list of items", *input);
  if (required && items->empty()) return from.reject("input", "not empty", *input);
  for (std::size_t i = 0; i < items->size() && from.ok(); ++i)
    read_item(from, "input[" + std::to_string(i) + "]", (*items)[i], to);
}

void reject_foreign(fields& from) {
  bool background = false;
  from.read("background", background);
  if (background)
    from.reject("background", "false: there are no background responses", value(true));
  for (const auto name : {"conversation", "prompt"})
    if (const auto* v = from.find(name))
      from.reject(name, "absent: this server does not support it", *v);
  if (const auto* truncation = from.find("truncation"); truncation != nullptr)
    if (*truncation != value("disabled")) from.reject("truncation", "\"disabled\"", *truncation);
  if (const auto* text = from.object("text"))
    if (const auto* format = text->find("format"); format != nullptr && !format->is_null())
      if (const auto* type = format->find("type"); type == nullptr || *type != value("text"))
        from.reject("text.format.type", "\"text\"", type == nullptr ? value() : *type);
  std::int32_t n = 1;
  from.read("n", n, 1, 1);
}

void read_echo(fields& from, response_echo& to) {
  from.read("instructions", to.instructions);
  from.read("user", to.user);
  from.read("parallel_tool_calls", to.parallel_tool_calls);
  from.read("store", to.store);
  from.read("top_logprobs", to.top_logprobs, 0);
  if (const auto* metadata = from.object("metadata")) to.metadata = *metadata;
  if (const auto* reasoning = from.object("reasoning")) to.reasoning = *reasoning;
  if (const auto* tools = from.find("tools")) {
    if (tools->as_list() == nullptr) from.reject("tools", "a list of tools", *tools);
    to.tools = *tools;
  }
  if (const auto* choice = from.find("tool_choice")) {
    if (*choice != value("auto") && *choice != value("none"))
      from.reject("tool_choice", "\"auto\" or \"none\"", *choice);
    to.tool_choice = *choice;
  }
  if (const auto* include = from.find("include")) {
    const auto* list = include->as_list();
    if (list == nullptr) return from.reject("include", "a list of strings", *include);
    for (const auto& entry : *list)
      if (entry == value("message.output_text.logprobs")) to.logprobs = true;
  }
}

/// Responses describe a function flat; templates know chat's nested form.
value chat_tools(const value& tools) {
  value_list nested;
  for (const auto& tool : *tools.as_list()) {
    const auto* object = tool.as_object();
    if (object == nullptr || tool.find("function") != nullptr ||
        text_of(tool.find("type")) != "function") {
      nested.push_back(tool);
      continue;
    }
    value_object function;
    for (const auto& member : *object)
      if (member.first != "type" && member.first != "strict") function.push_back(member);
    nested.push_back(value_object{{"type", "function"}, {"function", std::move(function)}});
  }
  return nested;
}

} // namespace

result<response_turn> parse_response_turn(const value& body, const codec_context& context,
                                          const find_response& find) {
  fields from(body);
  response_turn turn;
  turn.request.model = context.model.id;
  auto& sampling = turn.request.sampling;
  sampling = context.model.default_sampling;
  sampling.max_tokens =
      context.limits.default_max_tokens > 0 ? context.limits.default_max_tokens : -1;
  read_sampling(from, sampling);
  read_token_limit(from, {"max_output_tokens"}, sampling);
  reject_unsupported(from);
  reject_foreign(from);
  auto& echo = turn.echo;
  read_echo(from, echo);
  from.read("stream", turn.stream);
  from.read("generate", turn.generate);
  from.read("previous_response_id", echo.previous_response_id);
  sampling.logprobs = echo.logprobs ? echo.top_logprobs : -1;
  check_sampling(from, sampling, context);
  if (!from.ok()) return fail(from.error());

  if (!echo.previous_response_id.empty()) {
    const auto previous = find(echo.previous_response_id);
    if (previous == nullptr)
      return fail({errc::unknown_response,
                   "`previous_response_id` must name a response that this server remembers, got " +
                       describe(value(echo.previous_response_id)),
                   "previous_response_id"});
    turn.messages = previous->messages;
    if (from.find("instructions") == nullptr) echo.instructions = previous->instructions;
    if (from.find("tools") == nullptr && previous->tools.as_list() != nullptr)
      echo.tools = previous->tools;
  }
  const bool input_needed = turn.generate && turn.messages.empty();
  read_input(from, input_needed, turn.messages);
  if (!from.ok()) return fail(from.error());

  actors::chat_prompt prompt;
  value_list messages;
  if (!echo.instructions.empty()) messages.push_back(make_message("system", echo.instructions));
  messages.insert(messages.end(), turn.messages.begin(), turn.messages.end());
  prompt.messages = std::move(messages);
  if (!echo.tools.as_list()->empty() && echo.tool_choice == value("auto"))
    prompt.tools = chat_tools(echo.tools);
  if (const auto* arguments = from.object("chat_template_kwargs"))
    prompt.template_arguments = *arguments->as_object();
  if (!from.ok()) return fail(from.error());
  turn.request.prompt = std::move(prompt);

  echo.identity = make_identity("resp_", context.model);
  echo.max_output_tokens = sampling.max_tokens;
  echo.temperature = sampling.temperature;
  echo.top_p = sampling.top_p;
  return turn;
}

remembered_response remember(const response_turn& turn, const std::string& output_text) {
  remembered_response all;
  all.messages = turn.messages;
  if (turn.generate) {
    all.messages.push_back(make_message("assistant", output_text));
  } else {
    all.instructions = turn.echo.instructions;
    if (!turn.echo.tools.as_list()->empty()) all.tools = turn.echo.tools;
  }
  return all;
}

} // namespace twill::net
