#include "tests/actors/meaning/plain_form.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "models/text/grammar/matcher.hpp"
#include "models/text/grammar/spec_text.hpp"
#include "models/text/grammar/vocabulary.hpp"
#include "models/text/tool_calls/call_grammar.hpp"
#include "tests/support/operations.hpp"

namespace twill::test {
namespace {

namespace grammar = models::grammar;
namespace calls = models::tool_calls;
using ids = std::vector<std::int32_t>;
using choice_kind = actors::tool_choice_kind;
using spec_kind = config::grammar_kind;
constexpr std::string_view blanks = " \n\r\t";

/// Whether `text` ends with the most white space that is allowed between parts of JSON.
bool has_enough_space(const std::string& text) {
  bool in_string = false;
  std::size_t space = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string) {
      if (text[i] == '\\')
        ++i;
      else if (text[i] == '"')
        in_string = false;
      continue;
    }
    const bool blank = blanks.find(text[i]) != std::string_view::npos;
    space = blank ? space + 1 : 0;
    in_string = text[i] == '"';
  }
  return !in_string && space >= 64;
}

/// Control tokens with one of these texts.
ids control_tokens(const models::tokenizer& text, const std::vector<std::string>& wanted) {
  ids found;
  for (std::int32_t id = 0; id < text.vocab_size(); ++id)
    if (text.is_special(id))
      for (const std::string& one : wanted)
        if (!one.empty() && text.token_bytes(id, true) == one) found.push_back(id);
  return found;
}

std::string without_blank_end(std::string text) {
  while (!text.empty() && blanks.find(text.back()) != std::string_view::npos)
    text.pop_back();
  return text;
}

config::grammar_spec calls_of(const calls::tool_format& format, const std::vector<small_tool>& all,
                              const std::string& name, bool parallel) {
  std::vector<calls::callable> tools;
  for (const small_tool& tool : all)
    if (name.empty() || tool.name == name) tools.push_back({tool.name, tool.parameters});
  auto spec = calls::call_grammar(format, tools, parallel);
  demand(spec.has_value(), "the test's tools have no grammar");
  return *spec;
}

/// JSON of a schema, or one call.
config::grammar_spec schema_or_call(const config::grammar_spec& schema,
                                    const calls::tool_format& format,
                                    const std::vector<small_tool>& tools) {
  auto either = calls_of(format, tools, "", false);
  for (auto& frame : either.frames)
    frame = {either.list_begin + frame.before, frame.schema, frame.after + either.list_end};
  either.frames.push_back(
      {"", schema.kind == spec_kind::json_object ? R"({"type": "object"})" : schema.text, ""});
  either.list_begin = either.list_between = either.list_end = "";
  either.closed_objects = schema.closed_objects;
  return either;
}

} // namespace

plain_form form_of(const small_model& model, const actors::request& asked,
                   const std::string& written) {
  const auto& text = *model.files->text;
  const answer_style& style = style_of(model.chats, asked);
  const calls::tool_format& format = *style.calls;
  const calls::reasoning_tags tags;
  const ids call_marks =
      control_tokens(text, {format.begin, format.end, format.arguments, format.call_id});
  const ids tag_marks =
      style.thinks ? control_tokens(text, {tags.begin, tags.end}) : std::vector<std::int32_t>();
  const auto tools = tools_of(asked);
  const bool forced =
      asked.tools.kind == choice_kind::required || asked.tools.kind == choice_kind::named;

  plain_form form;
  if (!tools.empty()) form.reading.calls = format;
  if (forced) {
    form.one_call = !asked.tools.parallel || asked.tools.kind == choice_kind::named;
    form.grammar = calls_of(format, tools, asked.tools.name, !form.one_call);
    form.with_markers = !call_marks.empty();
    form.reading.only_calls = true;
    for (const small_tool& tool : tools)
      if (asked.tools.name.empty() || tool.name == asked.tools.name)
        form.reading.names.push_back(tool.name);
  } else if (asked.grammar) {
    const bool is_json = asked.grammar->kind == spec_kind::json_object ||
                         asked.grammar->kind == spec_kind::json_schema;
    const bool can_call = format.name == "hermes" || format.name == "mistral";
    if (!tools.empty() && is_json && can_call) {
      form.grammar = schema_or_call(*asked.grammar, format, tools);
      form.with_markers = !call_marks.empty();
      form.one_call = true;
      for (const small_tool& tool : tools)
        form.reading.names.push_back(tool.name);
    } else {
      form.grammar = asked.grammar;
      form.reading.calls.reset();
    }
  }
  const std::string before = without_blank_end(written);
  if (asked.parse_output && style.thinks) {
    form.reading.thoughts = tags;
    form.reading.begins_in_reasoning = before.ends_with(tags.begin);
    if (!form.reading.begins_in_reasoning && !before.ends_with(tags.end))
      for (std::int32_t id = text.vocab_size() - 1; id >= 0; --id)
        if (text.token_bytes(id, true) == tags.begin) form.begin_token = id;
    if (form.grammar && !tag_marks.empty()) form.with_markers = true;
  }
  if (form.with_markers || (asked.parse_output && form.reading.calls)) form.shown = call_marks;
  if (form.with_markers || form.reading.thoughts)
    form.shown.insert(form.shown.end(), tag_marks.begin(), tag_marks.end());
  return form;
}

const grammar::vocabulary_ptr& form_reader::tokens_of(const plain_form& form) {
  auto& tokens = form.with_markers ? marked_[form.shown] : plain_;
  if (!tokens)
    tokens =
        grammar::make_vocabulary(*files_.text, static_cast<std::int32_t>(files_.spec.vocab_size),
                                 form.with_markers ? form.shown : ids{});
  return tokens;
}

grammar::compiled_grammar_ptr form_reader::compile(const plain_form& form) {
  const auto& tokens = tokens_of(form);
  const auto text = grammar::grammar_text(*form.grammar, true);
  demand(text.ok(), "the test's grammar has no text");
  // A model has two vocabularies, with and without markers.
  auto& known = compiled_[{text.value(), form.with_markers}];
  if (known) return known;
  auto made = grammar::compile_here(text.value(), tokens, grammar::writes_json(*form.grammar));
  demand(made.ok(), "the test's grammar does not compile");
  return known = made.value();
}

next_tokens form_reader::after(const plain_form& form, const ids& output) {
  const grammar::vocabulary& tokens = *tokens_of(form);
  const auto bytes_of = [&](std::int32_t id) { return tokens.bytes[static_cast<std::size_t>(id)]; };
  grammar::matcher at(compile(form));
  std::size_t i = 0;
  std::string answer;
  next_tokens next;
  const bool reasons =
      form.reading.begins_in_reasoning || (!output.empty() && output.front() == form.begin_token);
  if (reasons) {
    i = form.reading.begins_in_reasoning ? 0 : 1;
    const std::string& end = form.reading.thoughts->end;
    std::string thoughts;
    while (i < output.size() && thoughts.find(end) == std::string::npos)
      thoughts += bytes_of(output[i++]);
    const auto found = thoughts.find(end);
    if (found == std::string::npos) { // before the answer, every token but an end is allowed
      next.mask.assign(grammar::mask_words(tokens.size()), ~0U);
      for (const auto id : tokens.end_ids)
        next.mask[static_cast<std::size_t>(id) / 32] &= ~(1U << (id % 32));
      return next;
    }
    answer = thoughts.substr(found + end.size());
    answer.erase(0, std::min(answer.find_first_not_of(blanks), answer.size()));
    // The last token of the reasoning is not masked by the grammar, but its rest must be accepted.
    if (!answer.empty()) demand(at.accept_text(answer), "an answer begins outside the grammar");
  }
  for (; i < output.size(); ++i) {
    demand(at.accept(output[i]), "a token is outside the grammar");
    answer += bytes_of(output[i]);
  }
  if (at.is_terminated()) {
    next.over = true;
    return next;
  }
  std::vector<std::int32_t> mask(grammar::mask_words(tokens.size()));
  at.fill_next_mask(mask);
  next.mask.assign(mask.begin(), mask.end());
  if (grammar::writes_json(*form.grammar) && has_enough_space(answer)) {
    auto others = next.mask;
    for (std::int32_t id = 0; id < tokens.size(); ++id)
      if (const auto bytes = bytes_of(id);
          !bytes.empty() && bytes.find_first_not_of(blanks) == std::string::npos)
        others[static_cast<std::size_t>(id) / 32] &= ~(1U << (id % 32));
    if (std::any_of(others.begin(), others.end(), [](auto word) { return word != 0; }))
      next.mask = others;
  }
  if (output.empty() && form.begin_token >= 0)
    next.mask[static_cast<std::size_t>(form.begin_token) / 32] |= 1U << (form.begin_token % 32);
  return next;
}

} // namespace twill::test
