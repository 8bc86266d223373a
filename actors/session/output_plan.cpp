#include "actors/session/output_plan.hpp"

#include <algorithm>
#include <utility>

#include "actors/session/chat_choice.hpp"
#include "config/base/json_text.hpp"
#include "models/text/tool_calls/call_grammar.hpp"
#include "models/text/tool_calls/detect.hpp"

namespace twill::actors {

namespace {

namespace calls = models::tool_calls;
using spec_kind = config::grammar_kind;

using tool_list = std::vector<calls::callable>;

/// Reads the tools of a request. A tool is {"type": "function", "function": {...}}, or has the
/// function's members directly.
tool_list tools_of(const value& tools) {
  tool_list out;
  const auto* list = tools.as_list();
  if (list == nullptr) return out;
  for (const value& tool : *list) {
    const value* nested = tool.find("function");
    const value& function = nested != nullptr ? *nested : tool;
    const value* name = function.find("name");
    if (name == nullptr || name->as_string() == nullptr) continue;
    const value* parameters = function.find("parameters");
    out.push_back({*name->as_string(), parameters == nullptr || parameters->is_null()
                                           ? std::string()
                                           : to_json(*parameters)});
  }
  return out;
}

std::string quoted(const std::string& text) {
  return '"' + text + '"';
}

/// The grammar of an answer that must be a call.
result<config::grammar_spec> forced_call(const answer_format& answers, const tool_choice& choice,
                                         tool_list tools) {
  const bool named = choice.kind == tool_choice_kind::named;
  if (named) {
    std::erase_if(tools, [&](const calls::callable& c) { return c.name != choice.name; });
    if (tools.empty())
      return failure{errc::invalid_argument,
                     "`tool_choice` must name one of `tools`, got " + quoted(choice.name)};
  }
  if (tools.empty())
    return failure{errc::invalid_argument,
                   "`tool_choice` must be \"auto\" or \"none\" without `tools`"};
  const auto cannot = [&](const std::string& why) {
    return failure{errc::grammar_refused, "`tool_choice` cannot be enforced by this model: " + why +
                                              "; ask for \"auto\" or \"none\""};
  };
  if (!answers.calls)
    return cannot("its chat template tells of no format of tool calls (`model.tool_format` can "
                  "name one)");
  auto spec = calls::call_grammar(*answers.calls, tools, choice.parallel && !named);
  if (!spec)
    return cannot("the format " + answers.calls->name + " has no room for names with `:` or `/`");
  return std::move(*spec);
}

/// The grammar of an answer that is either JSON of a schema or calls, for a client that asks for a
/// schema and offers tools. Returns nullopt if a call could not be distinguished from such JSON.
std::optional<config::grammar_spec> schema_or_call(const answer_format& answers,
                                                   const config::grammar_spec& schema,
                                                   const tool_list& tools) {
  if (!answers.calls || tools.empty()) return std::nullopt;
  const auto syntax = answers.calls->syntax;
  if (syntax != calls::call_syntax::tagged_json && syntax != calls::call_syntax::listed_json)
    return std::nullopt;
  if (schema.kind != spec_kind::json_schema && schema.kind != spec_kind::json_object)
    return std::nullopt;
  auto spec = calls::call_grammar(*answers.calls, tools, false);
  if (!spec) return std::nullopt;
  for (config::framed_schema& frame : spec->frames) {
    frame.before = spec->list_begin + frame.before;
    frame.after += spec->list_end;
  }
  spec->list_begin = spec->list_between = spec->list_end = "";
  spec->frames.push_back(
      {"", schema.kind == spec_kind::json_object ? R"({"type": "object"})" : schema.text, ""});
  spec->closed_objects = schema.closed_objects;
  return spec;
}

bool ends_with(std::string_view text, std::string_view end) {
  const auto last = text.find_last_not_of(" \n\r\t");
  return last != std::string_view::npos && text.substr(0, last + 1).ends_with(end);
}

} // namespace

result<output_plan> plan_output(const served_model& model, const request& asked,
                                std::string_view prompt) {
  using kind = tool_choice_kind;
  const auto* chat = std::get_if<chat_prompt>(&asked.prompt);
  const answer_format* chosen = &model.answers;
  if (chat != nullptr && !model.other_answers.empty()) {
    const auto choice = choose_chat(model, *chat);
    if (!choice.ok()) return choice.error();
    chosen = choice.value().answers;
  }
  const answer_format& answers = *chosen;
  const bool forced = asked.tools.kind == kind::required || asked.tools.kind == kind::named;
  const bool offered = chat != nullptr && asked.tools.kind != kind::none;
  const tool_list tools = offered ? tools_of(chat->tools) : tool_list{};
  output_plan plan;
  auto& reading = plan.reading;
  if (!tools.empty()) reading.calls = answers.calls;
  if (forced) {
    if (asked.grammar)
      return failure{errc::invalid_argument,
                     "`tool_choice` must be \"auto\" or \"none\" when the form of the output is "
                     "given as well"};
    auto spec = forced_call(answers, asked.tools, tools);
    if (!spec.ok()) return spec.error();
    plan.grammar = std::move(spec).value();
    reading.only_calls = true;
    for (const calls::callable& tool : tools)
      if (asked.tools.kind == kind::required || tool.name == asked.tools.name)
        reading.names.push_back(tool.name);
    plan.grammar_field = "tools";
    plan.with_markers = !answers.call_markers.empty();
  } else if (asked.grammar) {
    plan.grammar = schema_or_call(answers, *asked.grammar, tools);
    plan.with_markers = plan.grammar && !answers.call_markers.empty();
    if (plan.grammar) {
      for (const calls::callable& tool : tools)
        reading.names.push_back(tool.name);
    } else {
      plan.grammar = asked.grammar;
      reading.calls.reset();
    }
    plan.grammar_field = asked.grammar_field.empty() ? "grammar" : asked.grammar_field;
  }
  if (asked.parse_output) {
    reading.thoughts = answers.reasoning;
    reading.begins_in_reasoning =
        answers.reasoning && calls::ends_in_reasoning(prompt, *answers.reasoning);
    if (answers.reasoning && !reading.begins_in_reasoning &&
        !ends_with(prompt, answers.reasoning->end))
      plan.reasoning_begin_token = answers.reasoning_begin_token;
    if (plan.grammar && answers.reasoning && !answers.reasoning_markers.empty())
      plan.with_markers = true;
    if (reading.calls) plan.shown = answers.call_markers;
    if (reading.thoughts)
      plan.shown.insert(plan.shown.end(), answers.reasoning_markers.begin(),
                        answers.reasoning_markers.end());
  }
  if (plan.with_markers) plan.shown = answers.markers();
  plan.is_json = plan.grammar && (plan.grammar->kind == spec_kind::json_object ||
                                  plan.grammar->kind == spec_kind::json_schema ||
                                  plan.grammar->kind == spec_kind::framed);
  return plan;
}

answer_format find_answer_format(const models::tokenizer& text, const models::chat_template* chat,
                                 const std::string& tool_format) {
  answer_format out;
  const std::string source = chat != nullptr ? chat->source() : std::string();
  out.calls =
      tool_format == "auto" ? calls::detect_format(source) : calls::format_named(tool_format);
  out.reasoning = calls::detect_reasoning(source);
  const auto is_mark = [](const std::string& token, const std::string& marker) {
    return !marker.empty() && token == marker;
  };
  for (std::int32_t id = 0; id < text.vocab_size(); ++id) {
    const std::string token = text.token_bytes(id, true);
    const bool special = text.is_special(id);
    if (out.calls && special &&
        (is_mark(token, out.calls->begin) || is_mark(token, out.calls->end) ||
         is_mark(token, out.calls->arguments) || is_mark(token, out.calls->call_id)))
      out.call_markers.push_back(id);
    if (!out.reasoning) continue;
    if (out.reasoning_begin_token < 0 && is_mark(token, out.reasoning->begin))
      out.reasoning_begin_token = id;
    if (special && (is_mark(token, out.reasoning->begin) || is_mark(token, out.reasoning->end)))
      out.reasoning_markers.push_back(id);
  }
  return out;
}

result<std::vector<std::vector<std::int32_t>>>
tokens_of_words(const models::tokenizer& text, const std::vector<std::string>& words) {
  std::vector<std::vector<std::int32_t>> out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word =
        words[i].substr(std::min(words[i].find_first_not_of(' '), words[i].size()));
    std::vector<std::int32_t> plain;
    for (const std::string& spelled : {word, " " + word}) {
      const auto ids = text.encode(spelled, {});
      if (!ids.ok())
        return failure{errc::invalid_argument,
                       "`bad_words[" + std::to_string(i) + "]`: " + ids.detail()};
      // The tokens of the word after a space are added to the banned sequences only if they are as
      // many as those of the word without the space, and have another first token.
      if (ids.value().empty() || (!plain.empty() && (ids.value().size() != plain.size() ||
                                                     ids.value().front() == plain.front())))
        continue;
      plain = ids.value();
      out.push_back(ids.value());
    }
  }
  return out;
}

std::vector<std::uint32_t> mask_of(const std::vector<std::int32_t>& ids, std::int32_t n_tokens) {
  std::vector<std::uint32_t> mask((static_cast<std::size_t>(n_tokens) + 31) / 32, 0);
  for (const std::int32_t id : ids)
    mask[static_cast<std::size_t>(id) / 32] |= std::uint32_t{1} << (id % 32);
  return mask;
}

} // namespace twill::actors
