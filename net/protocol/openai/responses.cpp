#include "net/protocol/openai/responses.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "net/protocol/chat_fields.hpp"
#include "net/protocol/generation_fields.hpp"
#include "net/protocol/json/fields.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/protocol/json/members.hpp"
#include "net/protocol/openai/conversation.hpp"
#include "net/protocol/output_form.hpp"
#include "net/protocol/sampling_fields.hpp"
#include "net/server_name.hpp"
#include "net/stored/stored_api.hpp"

namespace twill::net {
namespace {

void read_message_item(fields& from, const std::string& at, const value& item, conversation& to) {
  const auto* role = item.find("role");
  const auto* content = item.find("content");
  if (role == nullptr || role->as_string() == nullptr)
    return from.reject(at + ".role", "a role such as \"user\"", role == nullptr ? value() : *role);
  if (content == nullptr || content->is_null())
    return from.reject(at + ".content", "a string or a list of text parts", value());
  static constexpr std::array<std::string_view, 4> roles = {"user", "assistant", "system",
                                                            "developer"};
  const auto& given = *role->as_string();
  if (std::find(roles.begin(), roles.end(), given) == roles.end())
    return from.reject(at + ".role", R"("user", "assistant", "system" or "developer")", *role);
  to.add(make_message(given, read_content(from, at + ".content", *content)));
}

void read_call_item(fields& from, const std::string& at, const value& item, conversation& to) {
  const auto name = text_of(item.find("name"));
  if (name.empty()) return from.reject(at + ".name", "the name of a function", value());
  const auto* arguments = item.find("arguments");
  if (arguments != nullptr && !arguments->is_null() && arguments->as_string() == nullptr &&
      arguments->as_object() == nullptr)
    return from.reject(at + ".arguments", "a JSON text or an object", *arguments);
  to.add_call(make_tool_call(text_of(item.find("call_id")), name,
                             arguments == nullptr ? value() : *arguments));
}

void read_item(fields& from, const std::string& at, const value& item, conversation& to) {
  if (item.as_object() == nullptr) return from.reject(at, "an object", item);
  const auto* type = item.find("type");
  const std::string kind = type == nullptr ? "message" : text_of(type);
  if (kind == "message") return read_message_item(from, at, item, to);
  if (kind == "reasoning") return; // reasoning is not written into the prompt again
  if (kind == "function_call") return read_call_item(from, at, item, to);
  if (kind == "function_call_output") {
    const auto* output = item.find("output");
    if (output == nullptr || output->is_null())
      return from.reject(at + ".output", "a string or a list of text parts", value());
    if (text_of(item.find("call_id")).empty())
      return from.reject(at + ".call_id", "the `call_id` of a function call", value());
    value_object message{{"role", "tool"},
                         {"content", read_content(from, at + ".output", *output)},
                         {"tool_call_id", text_of(item.find("call_id"))}};
    return to.add(std::move(message));
  }
  from.reject(at + ".type",
              "\"message\", \"function_call\", \"function_call_output\" or \"reasoning\"",
              type == nullptr ? value() : *type);
}

void read_input(fields& from, bool required, conversation& to) {
  const auto* input = from.find("input");
  if (input == nullptr) {
    if (required) from.require("input");
    return;
  }
  if (const auto* text = input->as_string()) return to.add(make_message("user", *text));
  const auto* items = input->as_list();
  if (items == nullptr) return from.reject("input", "a string or a list of items", *input);
  if (required && items->empty()) return from.reject("input", "not empty", *input);
  for (std::size_t i = 0; i < items->size() && from.ok(); ++i)
    read_item(from, "input[" + std::to_string(i) + "]", (*items)[i], to);
}

constexpr std::string_view not_here = "absent: this server does not support it";
constexpr std::array refused_here = {
    field_row{"conversation", schema::any, not_here, field_use::refused},
    field_row{"prompt", schema::any, not_here, field_use::refused},
    field_row{"prompt_logprobs", schema::any, not_here, field_use::refused},
    field_row{"functions", schema::any, not_here, field_use::refused},
    field_row{"function_call", schema::any, not_here, field_use::refused}};

constexpr std::array response_rows = {
    field_row{"input", R"("type":["string","array"],"items":{"type":"object"})",
              "A text, or a list of messages, function calls and their outputs.",
              field_use::honoured, true},
    field_row{"instructions", schema::string, "A system message for this turn alone."},
    field_row{"previous_response_id", schema::string, "The response that this one continues."},
    field_row{"stream", schema::boolean, "The response comes as server-sent events."},
    field_row{"store", schema::boolean, "It is kept under its id (the default)."},
    field_row{"background", schema::boolean, "It goes on when the client leaves; needs `store`."},
    field_row{"tools", R"("type":"array","maxItems":128,"items":{"type":"object"})",
              "Functions that the answer may call."},
    field_row{"tool_choice", R"("type":["string","object"])",
              R"("auto", "none", "required", one function, or `allowed_tools`.)"},
    field_row{"parallel_tool_calls", schema::boolean, "False: at most one call in a response."},
    field_row{"text", schema::object, "`format`: what the output must look like."},
    field_row{"truncation", R"("enum":["auto","disabled"])",
              "With \"auto\" the oldest turns are left out where the output has no room."},
    field_row{"top_logprobs", R"("type":"integer","minimum":0)",
              "How many likeliest tokens are named in each place, if `include` asks for them."},
    field_row{"include", R"("type":"array","items":{"type":"string"})",
              "\"message.output_text.logprobs\" gives log-probabilities."},
    field_row{"metadata", schema::object, "Comes back with the response."},
    field_row{"user", schema::string, "Comes back with the response."},
    field_row{"reasoning", schema::object, "Comes back with the response."},
    field_row{"n", R"("const":1)", "A response has one output."},
    field_row{"generate", schema::boolean,
              "Over WebSocket: false reads the input and makes no output."}};

void reject_foreign(fields& from) {
  for (const auto& row : refused_here)
    if (const auto* v = from.find(row.name)) from.reject(row.name, row.note, *v);
  std::int32_t n = 1;
  from.read("n", n, 1, 1);
}

void read_echo(fields& from, response_echo& to) {
  from.read("instructions", to.instructions);
  from.read("user", to.user);
  from.read("parallel_tool_calls", to.parallel_tool_calls);
  from.read("store", to.store);
  from.read("background", to.background);
  if (to.background && !to.store)
    from.reject("background", "false where `store` is false", value(true));
  from.read("top_logprobs", to.top_logprobs, 0);
  if (const auto* metadata = from.object("metadata")) to.metadata = *metadata;
  if (const auto* reasoning = from.object("reasoning")) to.reasoning = *reasoning;
  if (const auto* tools = from.find("tools")) {
    if (tools->as_list() == nullptr) from.reject("tools", "a list of tools", *tools);
    to.tools = *tools;
  }
  if (const auto* choice = from.find("tool_choice")) to.tool_choice = *choice;
  if (const auto* text = from.object("text")) {
    value_object read{{"format", value_object{{"type", "text"}}}};
    for (const auto& [key, v] : *text->as_object())
      if (key == "format" && !v.is_null())
        read.front().second = v;
      else if (key != "format")
        read.emplace_back(key, v);
    to.text = std::move(read);
  }
  if (const auto* include = from.find("include")) {
    const auto* list = include->as_list();
    if (list == nullptr) return from.reject("include", "a list of strings", *include);
    for (const auto& entry : *list)
      if (entry == value("message.output_text.logprobs")) to.logprobs = true;
  }
}

/// Reads `truncation`. With "auto", the oldest turns are dropped if the output would have no room.
void read_truncation(fields& from, const codec_context& context, std::int64_t max_tokens,
                     response_echo& echo, actors::chat_prompt& to) {
  const auto* given = from.find("truncation");
  if (given == nullptr || given->is_null()) return;
  if (*given != value("auto") && *given != value("disabled"))
    return from.reject("truncation", R"("auto" or "disabled")", *given);
  echo.truncation = *given->as_string();
  if (*given != value("auto")) return;
  const std::int64_t room = max_tokens >= 0 ? max_tokens : context.model.max_model_len / 8;
  to.drop_turns_for_output = static_cast<std::int32_t>(std::max<std::int64_t>(room, 1));
}

/// Reads the tools and the choice among them; a turn may have inherited both from an earlier turn.
void read_turn_tools(fields& from, const response_echo& echo, actors::request& to,
                     actors::chat_prompt& prompt) {
  auto tools = read_tool_list(from, "tools", echo.tools);
  if (!from.ok()) return;
  to.tools.parallel = echo.parallel_tool_calls;
  read_tool_choice(from, "tool_choice", echo.tool_choice, tools, to.tools);
  const bool none = tools.as_list()->empty() || to.tools.kind == actors::tool_choice_kind::none;
  if (!none) prompt.tools = std::move(tools);
}

} // namespace

field_rows responses_rows() {
  field_rows rows{model_row};
  add_rows(rows, response_rows);
  add_sampling_rows(rows);
  add_limit_rows(rows, {"max_output_tokens"});
  add_queue_rows(rows);
  add_form_rows(rows);
  add_rows(rows, refused_here);
  rows.push_back(no_continuation_row);
  add_foreign_rows(rows);
  return rows;
}

result<response_turn> parse_response_turn(const value& body, const codec_context& context,
                                          const find_previous& find) {
  fields from(body);
  response_turn turn;
  turn.request.parse_output = true;
  auto& sampling = turn.request.sampling;
  set_defaults(context, turn.request);
  read_sampling(from, sampling);
  read_token_limit(from, {"max_output_tokens"}, 1, sampling);
  read_queue_fields(from, turn.request);
  read_response_form(from, turn.request);
  reject_unsupported(from);
  reject_continuation(from);
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
    turn.previous = find(echo.previous_response_id);
    const auto& previous = turn.previous;
    if (previous == nullptr)
      return fail(
          {errc::unknown_response,
           "`previous_response_id` must name a response that this server remembers, got " +
               describe_unknown_value(response_ids, echo.previous_response_id, context.server_name),
           "previous_response_id"});
    if (!previous->may_be_stored) {
      if (echo.background)
        return fail(api_error::of({"background",
                                   "be false where what is continued was sent with `store: "
                                   "false`",
                                   "true"}));
      echo.store = false;
    }
    turn.messages = previous->messages;
    if (from.find("instructions") == nullptr) echo.instructions = previous->instructions;
    if (from.find("tools") == nullptr && previous->tools.as_list() != nullptr)
      echo.tools = previous->tools;
  }
  const bool input_needed = turn.generate && turn.messages.empty();
  conversation said(std::move(turn.messages));
  read_input(from, input_needed, said);
  actors::chat_prompt prompt;
  read_turn_tools(from, echo, turn.request, prompt);
  if (!from.ok()) return fail(from.error());

  turn.messages = said.take();
  value_list messages;
  if (!echo.instructions.empty()) messages.push_back(make_message("system", echo.instructions));
  messages.insert(messages.end(), turn.messages.begin(), turn.messages.end());
  prompt.messages = std::move(messages);
  read_template_fields(from, prompt);
  read_truncation(from, context, sampling.max_tokens, echo, prompt);
  if (!from.ok()) return fail(from.error());
  echo.identity = make_identity(id_prefix_of(stored_api::responses), context);
  prompt.now_unix_s = echo.identity.created_unix_s;
  turn.request.prompt = std::move(prompt);

  echo.max_output_tokens = sampling.max_tokens;
  echo.temperature = sampling.temperature;
  echo.top_p = sampling.top_p;
  return turn;
}

remembered_response remember(const response_turn& turn, std::string output_text,
                             value_list tool_calls) {
  remembered_response all;
  all.messages = turn.messages;
  all.may_be_stored = turn.echo.store;
  if (turn.generate) {
    const bool only_calls = output_text.empty() && !tool_calls.empty();
    value_object message{{"role", "assistant"},
                         {"content", only_calls ? value() : value(std::move(output_text))}};
    if (!tool_calls.empty()) message.emplace_back("tool_calls", std::move(tool_calls));
    all.messages.push_back(std::move(message));
  } else {
    all.instructions = turn.echo.instructions;
    if (!turn.echo.tools.as_list()->empty()) all.tools = turn.echo.tools;
  }
  return all;
}

} // namespace twill::net
