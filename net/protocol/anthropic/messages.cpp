#include "net/protocol/anthropic/messages.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "net/protocol/anthropic/message_content.hpp"
#include "net/protocol/anthropic/message_reply.hpp"
#include "net/protocol/anthropic/message_tools.hpp"
#include "net/protocol/chat_fields.hpp"
#include "net/protocol/generation_fields.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/protocol/json/members.hpp"
#include "net/protocol/output_form.hpp"
#include "net/protocol/sampling_fields.hpp"

namespace twill::net {
namespace {

struct asked_message {
  actors::request request;
  message_options options;
};

/// Reads `thinking`: sets the template argument `enable_thinking`, and which part of the reasoning
/// the reply contains. Without `thinking` the template uses its own default, as in the other APIs.
void read_thinking(fields& from, actors::chat_prompt& to, message_options& options) {
  const auto* given = from.object("thinking");
  if (given == nullptr) return;
  const auto type = text_of(given->find("type"));
  const bool on = type == "enabled" || type == "adaptive";
  if (!on && type != "disabled" && type != "between_tools")
    return from.reject("thinking.type", R"("enabled", "adaptive", "disabled" or "between_tools")",
                       given->find("type") == nullptr ? value() : *given->find("type"));
  fields thinking(*given, "thinking.");
  std::int32_t budget = 0;
  std::string display = "summarized";
  thinking.read("budget_tokens", budget, 0);
  thinking.read("display", display);
  if (display != "summarized" && display != "omitted")
    thinking.reject("display", R"("summarized" or "omitted")", value(display));
  if (!thinking.ok()) return from.reject(thinking.error());
  if (on && to.continue_last)
    return from.reject("thinking.type",
                       "\"disabled\" where the last message is the beginning of the answer",
                       value(type));
  options.thinking = !on                    ? thinking_shown::no
                     : display == "omitted" ? thinking_shown::signature
                                            : thinking_shown::text;
  auto& arguments = to.template_arguments; // `chat_template_kwargs` takes precedence
  if (std::none_of(arguments.begin(), arguments.end(),
                   [](const auto& one) { return one.first == "enable_thinking"; }))
    arguments.emplace_back("enable_thinking", on);
}

/// Reads `context_management`. The edits that it may ask for only make long conversations shorter,
/// so a server need not make them: this server makes none, and the reply says so.
void read_context_management(fields& from, message_options& options) {
  const auto* given = from.object("context_management");
  const auto* edits = given == nullptr ? nullptr : member(*given, "edits");
  if (edits == nullptr) return;
  if (edits->as_list() == nullptr) return from.reject("context_management.edits", "a list", *edits);
  for (std::size_t i = 0; i < edits->as_list()->size(); ++i) {
    const auto* type = (*edits->as_list())[i].find("type");
    const auto name = text_of(type);
    if (!name.starts_with("clear_thinking_") && !name.starts_with("clear_tool_uses_"))
      return from.reject("context_management.edits[" + std::to_string(i) + "].type",
                         "an edit that clears thinking or tool uses: this server summarizes "
                         "nothing",
                         type == nullptr ? value() : *type);
  }
  options.context_management = true;
}

/// Reads fields about Anthropic's service. Fields without effect are only checked for their types.
/// Fields that ask the server to run something are refused.
void read_service_fields(fields& from) {
  from.object("metadata");
  from.object("cache_control");
  std::string ignored;
  from.read("service_tier", ignored);
  if (const auto* output = from.object("output_config"))
    if (const auto* effort = member(*output, "effort");
        effort != nullptr && effort->as_string() == nullptr)
      from.reject("output_config.effort", "a string", *effort);
  if (const auto* servers = from.find("mcp_servers");
      servers != nullptr && (servers->as_list() == nullptr || !servers->as_list()->empty()))
    from.reject("mcp_servers", "empty or absent: this server calls no others", *servers);
  if (const auto* container = from.find("container"))
    from.reject("container", "absent: this server runs no programs of a request", *container);
  if (const auto* n = from.find("n"); n != nullptr && as_integer(*n) != 1)
    from.reject("n", "absent: a message has one answer", *n);
}

/// Reads only the fields that determine the prompt: `messages`, `system`, `tools` and `thinking`.
tool_fields read_message_prompt(fields& from, actors::chat_prompt& to, message_options& options) {
  read_message_list(from, to);
  auto tools = read_message_tools(from);
  to.tools = tools.tools;
  read_template_fields(from, to);
  read_thinking(from, to, options);
  return tools;
}

constexpr std::array prompt_fields = {
    field_row{"messages", R"("type":"array","minItems":1,"items":{"type":"object"})",
              "The conversation; blocks must be text, thinking, tool calls or their results.",
              field_use::honoured, true},
    field_row{"system", R"("type":["string","array"])", "A text, or blocks of text."},
    field_row{"tools", R"("type":"array","maxItems":128,"items":{"type":"object"})",
              "Functions that the answer may call; none of Anthropic's own tools."},
    field_row{"tool_choice", schema::object, "`auto`, `any`, `tool` with a name, or `none`."},
    field_row{"thinking", schema::object,
              "`type`: whether the template asks for thinking. `budget_tokens` has no effect."}};

constexpr field_row continuation_row{
    "continue_final_message", schema::any,
    "false or absent: the answer goes on from a last message of the assistant without it",
    field_use::refused};

constexpr std::array message_fields = {
    field_row{"max_tokens", R"("type":"integer","minimum":0)",
              "The most tokens of the answer; fewer where the context has no room for more.",
              field_use::honoured, true},
    field_row{"stop_sequences", R"("type":"array","items":{"type":"string"})",
              "Texts that end the answer."},
    field_row{"stream", schema::boolean, "The answer comes as server-sent events."},
    field_row{"output_config", schema::object,
              "`format`: a JSON Schema that the answer follows. `effort` has no effect."},
    field_row{"output_format", schema::object, "As `output_config.format`."},
    field_row{"context_management", schema::object,
              "Edits that clear thinking or tool uses are accepted, and not made."},
    field_row{"n", R"("const":1)", "A message has one answer."},
    field_row{"metadata", schema::object, "Anthropic", field_use::no_effect},
    field_row{"cache_control", schema::object, "Anthropic: prefixes are cached by themselves.",
              field_use::no_effect},
    field_row{"service_tier", schema::string, "Anthropic", field_use::no_effect},
    field_row{"mcp_servers", schema::list, "empty or absent: this server calls no others",
              field_use::refused},
    field_row{"container", schema::any, "absent: this server runs no programs of a request",
              field_use::refused}};

result<asked_message> read_asked_message(const value& body, const codec_context& context) {
  fields from(body);
  asked_message read;
  auto& request = read.request;
  auto& options = read.options;
  auto& sampling = request.sampling;
  set_defaults(context, request);
  from.require("max_tokens");
  from.read("max_tokens", sampling.max_tokens, 0);
  read_sampling(from, sampling);
  if (const auto* stops = from.find("stop_sequences"); stops != nullptr && !stops->as_list())
    from.reject("stop_sequences", "a list of strings", *stops);
  from.read_strings("stop_sequences", sampling.stop);
  read_queue_fields(from, request);
  read_message_form(from, request);
  from.read("stream", options.stream);
  reject_unsupported(from);
  reject_listed(from, std::span(&continuation_row, 1));
  read_service_fields(from);
  read_context_management(from, options);
  if (auto found = breach_of(sampling, context)) {
    if (found->field == "stop") found->field = "stop_sequences";
    from.reject(*found);
  }
  actors::chat_prompt prompt;
  const auto tools = read_message_prompt(from, prompt, options);
  if (!from.ok()) return fail(from.error());

  options.identity = make_identity("msg_", context);
  options.parallel_calls = tools.choice.parallel;
  options.max_tokens = sampling.max_tokens;
  prompt.now_unix_s = options.identity.created_unix_s;
  request.prompt = std::move(prompt);
  request.tools = tools.choice;
  request.parse_output = true;
  request.shorten_output = true;
  return read;
}

} // namespace

field_rows count_rows() {
  field_rows rows{model_row};
  add_rows(rows, prompt_fields);
  add_template_rows(rows);
  return rows;
}

field_rows message_rows() {
  auto rows = count_rows();
  add_rows(rows, message_fields);
  add_sampling_rows(rows);
  add_queue_rows(rows);
  add_form_rows(rows);
  rows.push_back(continuation_row);
  add_foreign_rows(rows);
  return rows;
}

result<call> parse_messages(const value& body, const codec_context& context) {
  auto read = read_asked_message(body, context);
  if (!read.ok()) return fail(read.code());
  auto& [request, options] = read.value();
  call generation;
  generation.stream = options.stream;
  generation.requests.push_back(std::move(request));
  generation.encoder = std::make_unique<message_reply>(std::move(options));
  return generation;
}

result<std::string> count_tokens_body(const value& body, const codec_context& context) {
  fields from(body);
  actors::chat_prompt prompt;
  message_options options;
  read_message_prompt(from, prompt, options);
  if (!from.ok()) return fail(from.error());
  const auto tokens = context.engine.tokenize_chat(context.model.id, prompt);
  if (!tokens.ok()) return fail(from_engine(tokens.code(), tokens.detail()));
  std::string out;
  json_writer(out).begin_object().field("input_tokens", tokens.value().size()).end_object();
  return out;
}

} // namespace twill::net
