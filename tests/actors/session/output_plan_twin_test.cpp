// The grammar and the parser of a request's output, compared with a table of independent rules.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/session/output_plan.hpp"
#include "config/base/json_text.hpp"
#include "models/text/tool_calls/call_grammar.hpp"
#include "models/text/tool_calls/tool_format.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::actors;
using namespace twill::test;
namespace calls = models::tool_calls;
using config::grammar_spec;
using spec_kind = config::grammar_kind;

namespace {

constexpr std::array tool_names{"look", "a/b", "go", "look"};

struct offered_tool {
  std::string name;
  std::string parameters; ///< JSON, or empty for none
  bool nested;            ///< written in a member `function`
};

value written_tool(const offered_tool& tool) {
  value_object function{{"name", tool.name}};
  if (!tool.parameters.empty())
    function.emplace_back("parameters", value_object{{"type", "object"}});
  if (!tool.nested) return function;
  return value_object{{"type", "function"}, {"function", function}};
}

answer_format some_answers(std::uint32_t n) {
  answer_format out;
  const auto& formats = calls::known_formats();
  if (const auto which = n % (formats.size() + 1); which > 0) out.calls = formats[which - 1];
  n /= static_cast<std::uint32_t>(formats.size() + 1);
  if (n % 2 == 1) out.reasoning = calls::reasoning_tags{};
  if (n / 2 % 2 == 1 && out.calls) out.call_markers = {300, 301};
  if (n / 4 % 2 == 1 && out.reasoning) {
    out.reasoning_markers = {302, 303};
    out.reasoning_begin_token = 302;
  }
  return out;
}

/// A request, and the model to which it is sent.
struct plan_case {
  plan_case(const operation& model_from, const operation& from);

  served_model model;
  request asked;
  std::vector<offered_tool> tools; ///< the tools of a chat that have a name
  std::string prompt;
};

plan_case::plan_case(const operation& model_from, const operation& from) {
  auto files = std::make_shared<models::model>();
  const auto parsed = [] { return models::chat_template::parse("hi", "", "").value(); };
  if (model_from.kind % 5 > 0) files->chat = parsed();
  for (const char* name : {"tool_use", "rag"})
    if ((name[0] == 't' ? model_from.kind / 5 : model_from.kind / 10) % 2 == 1) {
      files->other_chats.push_back({name, parsed()});
      model.other_answers.push_back(some_answers(name[0] == 't' ? model_from.b : model_from.c));
    }
  model.files = files;
  model.id = "m";
  model.answers = some_answers(model_from.a);
  constexpr std::array prompts{"hi", "hi <think>\n", "hi </think>\n\n", "<think> hi", "", " \n"};
  prompt = prompts[from.a / 64 % prompts.size()];
  asked.parse_output = from.a % 4 > 0;
  using kind = tool_choice_kind;
  constexpr std::array kinds{kind::automatic, kind::required, kind::named, kind::none};
  asked.tools.kind = kinds[from.a / 4 % 4];
  asked.tools.name = tool_names[from.a / 16 % 3];
  asked.tools.parallel = from.a / 400 % 2 == 0;
  if (const auto form = from.b % 12; form > 5) {
    asked.grammar.emplace();
    constexpr std::array forms{spec_kind::json_object, spec_kind::json_schema,
                               spec_kind::regex,       spec_kind::choice,
                               spec_kind::ebnf,        spec_kind::json_schema};
    asked.grammar->kind = forms[form - 6];
    asked.grammar->text = form == 7 ? R"({"type": "array"})" : "text";
    asked.grammar->closed_objects = from.b / 12 % 2 == 1;
    if (from.b / 24 % 3 > 0) asked.grammar_field = "response_format";
  }
  if (from.kind % 6 == 5) {
    asked.prompt = text_prompt{"text"};
    return;
  }
  chat_prompt chat;
  constexpr std::array templates{"", "", "", "default", "tool_use", "rag", "unknown"};
  chat.template_name = templates[from.kind / 6 % templates.size()];
  value_list list;
  std::uint32_t n = from.c;
  for (auto left = n % 4; left > 0; --left) {
    n = n / 4 + 17;
    offered_tool tool{tool_names[n % 3], n / 3 % 2 == 0 ? "" : R"({"type":"object"})",
                      n / 6 % 2 == 1};
    list.push_back(written_tool(tool));
    tools.push_back(tool);
    if (n / 12 % 5 == 0) list.push_back(value_object{{"type", "function"}}); // tool without a name
  }
  if (!list.empty() || n % 2 == 0) chat.tools = list;
  asked.prompt = std::move(chat);
}

/// The answer format of the chat template in use, or nothing if there is no template.
std::optional<answer_format> answers_of(const plan_case& one) {
  const auto* chat = std::get_if<chat_prompt>(&one.asked.prompt);
  const auto& others = one.model.files->other_chats;
  if (chat == nullptr || others.empty()) return one.model.answers;
  const auto named = [&](const std::string& name) -> std::optional<answer_format> {
    for (std::size_t i = 0; i < others.size(); ++i)
      if (others[i].name == name) return one.model.other_answers[i];
    return std::nullopt;
  };
  const bool by_default = chat->template_name.empty() || chat->template_name == "default";
  if (!by_default) return named(chat->template_name);
  const auto* list = chat->tools.as_list();
  if (chat->template_name.empty() && list != nullptr && !list->empty())
    if (auto for_tools = named("tool_use")) return for_tools;
  if (one.model.files->chat == nullptr) return std::nullopt;
  return one.model.answers;
}

/// The text without white space at its end.
std::string trimmed(std::string text) {
  while (!text.empty() && std::string(" \n\r\t").find(text.back()) != std::string::npos)
    text.pop_back();
  return text;
}

std::vector<calls::callable> callable_of(const std::vector<offered_tool>& tools) {
  std::vector<calls::callable> out;
  for (const auto& tool : tools)
    out.push_back({tool.name, tool.parameters});
  return out;
}

/// The grammar of an output that is either a tool call or an answer in the format `form`; nothing
/// if a parser could not distinguish the two.
std::optional<grammar_spec> call_or_answer(const answer_format& answers, const grammar_spec& form,
                                           const std::vector<offered_tool>& tools) {
  if (tools.empty() || !answers.calls) return std::nullopt;
  const bool are_distinct = answers.calls->syntax == calls::call_syntax::tagged_json ||
                            answers.calls->syntax == calls::call_syntax::listed_json;
  const bool is_json = form.kind == spec_kind::json_schema || form.kind == spec_kind::json_object;
  if (!are_distinct || !is_json) return std::nullopt;
  const auto one_call = calls::call_grammar(*answers.calls, callable_of(tools), false);
  if (!one_call) return std::nullopt;
  grammar_spec out = *one_call;
  out.frames.clear();
  for (const auto& frame : one_call->frames)
    out.frames.push_back(
        {one_call->list_begin + frame.before, frame.schema, frame.after + one_call->list_end});
  out.frames.push_back(
      {"", form.kind == spec_kind::json_schema ? form.text : R"({"type": "object"})", ""});
  out.list_begin = out.list_between = out.list_end = "";
  out.closed_objects = form.closed_objects;
  return out;
}

void check_form(const plan_case& one, const answer_format& answers, const output_plan& plan,
                const std::vector<offered_tool>& tools) {
  const bool forced = one.asked.tools.kind == tool_choice_kind::required ||
                      one.asked.tools.kind == tool_choice_kind::named;
  std::optional<grammar_spec> form = one.asked.grammar, both;
  std::vector<offered_tool> callables;
  if (forced) {
    for (const auto& tool : tools)
      if (one.asked.tools.kind == tool_choice_kind::required || tool.name == one.asked.tools.name)
        callables.push_back(tool);
    form = calls::call_grammar(*answers.calls, callable_of(callables),
                               one.asked.tools.parallel &&
                                   one.asked.tools.kind == tool_choice_kind::required);
  } else if (form) {
    both = call_or_answer(answers, *form, tools);
    if (both) {
      form = both;
      callables = tools;
    }
  }
  demand(plan.grammar == form, "the grammar");
  demand(plan.grammar_field == (forced                            ? "tools"
                                : !form                           ? ""
                                : one.asked.grammar_field.empty() ? "grammar"
                                                                  : one.asked.grammar_field),
         "the field is " + plan.grammar_field);
  demand_equal(plan.is_json,
               form && form->kind != spec_kind::regex && form->kind != spec_kind::choice &&
                   form->kind != spec_kind::ebnf,
               "whether the form is JSON");
  demand_equal(plan.reading.only_calls, forced, "whether nothing but calls may come");
  std::vector<std::string> names;
  for (const auto& tool : callables)
    names.push_back(tool.name);
  demand(plan.reading.names == names, "the names that the grammar lets through");
  const bool reads_calls = !tools.empty() && answers.calls && (forced || both || !form);
  demand_equal(plan.reading.calls.has_value(), reads_calls, "whether calls are read");
  if (reads_calls) demand(plan.reading.calls == answers.calls, "how calls are read");

  const bool thinks = one.asked.parse_output && answers.reasoning;
  const bool begun = thinks && trimmed(one.prompt).ends_with("<think>");
  const bool ended = thinks && trimmed(one.prompt).ends_with("</think>");
  demand_equal(plan.reading.thoughts.has_value(), thinks, "whether reasoning is read");
  demand_equal(plan.reading.begins_in_reasoning, begun, "whether the output begins in reasoning");
  demand_equal(plan.reasoning_begin_token,
               thinks && !begun && !ended ? answers.reasoning_begin_token : -1,
               "the token that begins reasoning");
  const bool in_grammar = ((forced || both) && !answers.call_markers.empty()) ||
                          (form && thinks && !answers.reasoning_markers.empty());
  demand_equal(plan.with_markers, in_grammar, "whether the grammar holds markers");
  std::vector<std::int32_t> shown;
  if (in_grammar || (one.asked.parse_output && reads_calls)) shown = answers.call_markers;
  if (in_grammar || thinks)
    for (const auto id : answers.reasoning_markers)
      shown.push_back(id);
  demand(plan.shown == shown, "the markers that are shown");
}

void check_plan(const plan_case& one) {
  const auto plan = plan_output(one.model, one.asked, one.prompt);
  const auto answers = answers_of(one);
  if (!answers) {
    demand(!plan.ok(), "a template that the model does not have");
    const auto& name = std::get<chat_prompt>(one.asked.prompt).template_name;
    const bool is_unknown = !name.empty() && name != "default";
    demand(plan.code() == (is_unknown ? errc::invalid_argument : errc::no_chat_template),
           "why there is no template");
    return;
  }
  const auto what = one.asked.tools.kind;
  const auto tools = what == tool_choice_kind::none ? std::vector<offered_tool>() : one.tools;
  if (what == tool_choice_kind::required || what == tool_choice_kind::named) {
    const auto is_meant = [&](const offered_tool& tool) {
      return what == tool_choice_kind::required || tool.name == one.asked.tools.name;
    };
    std::vector<offered_tool> meant;
    std::copy_if(tools.begin(), tools.end(), std::back_inserter(meant), is_meant);
    if (one.asked.grammar || meant.empty()) {
      demand(!plan.ok() && plan.code() == errc::invalid_argument, "a choice that cannot be meant");
      return;
    }
    if (!answers->calls || !calls::call_grammar(*answers->calls, callable_of(meant), false)) {
      demand(!plan.ok() && plan.code() == errc::grammar_refused, "calls that no format holds");
      return;
    }
  }
  demand(plan.ok(), "a plan is refused: " + (plan.ok() ? "" : plan.error().detail));
  check_form(one, *answers, plan.value(), tools);
}

void check_plans(const operations& sequence) {
  for (std::size_t i = 1; i < sequence.size(); ++i)
    check_plan(plan_case(sequence.front(), sequence[i]));
}

} // namespace

TEST_CASE("outputs are held to, and read by, what each rule by itself says") {
  CHECK(first_failure({.cases = 400, .long_cases = 40'000, .most_operations = 60}, check_plans) ==
        "");
}
