#include "models/text/chat_template.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <utility>

#include "models/text/detokenizer.hpp"
#include "models/text/jinja/evaluator.hpp"
#include "models/text/jinja/globals.hpp"
#include "models/text/jinja/parser.hpp"
#include "models/text/jinja/text_ops.hpp"
#include "models/text/message_form.hpp"

namespace twill::models {
namespace {

constexpr std::size_t max_source_bytes = 1u << 20;

using jinja::val;

/// Converts a value of the request. Every string in the value is marked as tainted.
val convert(jinja::runtime& rt, const value& v) {
  const jinja::depth_guard guard(rt);
  if (v.is_null()) return val(jinja::none_t{});
  if (const auto* b = v.as_bool()) return val(*b);
  if (const auto* i = v.as_int()) return val(*i);
  if (const auto* d = v.as_double()) return val(*d);
  if (const auto* big = v.as_big()) {
    rt.charge_text(big->digits.size());
    return val(std::make_shared<const big_integer>(*big));
  }
  if (const auto* s = v.as_string()) {
    if (!is_utf8(*s)) rt.fail("text in the request must be valid UTF-8");
    return rt.make_text(jinja::text(*s, true));
  }
  if (const auto* l = v.as_list()) {
    std::vector<val> items;
    items.reserve(l->size());
    for (const value& item : *l)
      items.push_back(convert(rt, item));
    return val(rt.make_list(jinja::list_data::list, std::move(items)));
  }
  jinja::dict_data* d = rt.make_dict();
  rt.charge_elements(v.as_object()->size());
  // Keys are unique, because the JSON reader merges equal keys.
  for (const auto& [key, member] : *v.as_object()) {
    if (!is_utf8(key)) rt.fail("text in the request must be valid UTF-8");
    d->items.emplace_back(rt.make_text(jinja::text(key, true)), convert(rt, member));
  }
  return val(d);
}

/// Removes the cut marks that the template printed. Cut marks in the text of messages stay.
rendered_prompt take_cut_marks(jinja::text rendered) {
  rendered_prompt out;
  auto range = rendered.taint.begin();
  std::size_t done = 0, removed = 0;
  const auto pass_ranges = [&](std::size_t limit) {
    for (; range != rendered.taint.end() && range->second <= limit; ++range)
      out.literal.emplace_back(range->first - removed, range->second - removed);
  };
  const std::string& text = rendered.bytes;
  for (std::size_t at = text.find(cut_mark); at != std::string::npos;
       at = text.find(cut_mark, at + cut_mark.size())) {
    pass_ranges(at);
    if (range != rendered.taint.end() && range->first <= at)
      continue; // the mark is part of a message
    out.text.append(text, done, at - done);
    out.literal.emplace_back(out.text.size(), out.text.size());
    done = at + cut_mark.size();
    removed += cut_mark.size();
  }
  pass_ranges(text.size());
  out.text.append(text, done);
  return out;
}

/// `message` is the index of the message at which the template failed; -1: unknown.
std::string describe(const jinja::template_error& error, int message = -1) {
  const std::string at =
      message < 0 ? std::string() : "messages[" + std::to_string(message) + "], ";
  return "chat template, line " + std::to_string(error.line) + ", " + at + error.message;
}

} // namespace

bool cut_after(std::string_view content, rendered_prompt& prompt) {
  const jinja::text given{std::string(content)};
  const auto trimmed = jinja::strip(given, nullptr, jinja::sides::both).bytes;
  content = content.substr(content.find(trimmed));
  auto& ranges = prompt.literal;
  const auto last = std::find_if(ranges.rbegin(), ranges.rend(),
                                 [](const auto& range) { return range.first < range.second; });
  if (trimmed.empty() || last == ranges.rend()) return false;
  const std::size_t end = last->second;
  const auto shown = std::string_view(prompt.text).substr(0, end);
  if (!shown.ends_with(content) && !shown.ends_with(trimmed)) return false;
  prompt.text.resize(end);
  ranges.erase(last.base(), ranges.end());
  return true;
}

struct chat_template::impl {
  std::string source;
  std::string bos_token, eos_token;
  jinja::body statements;
  mutable std::once_flag tried;
  mutable message_form form;

  jinja::text run(jinja::evaluator& evaluate, const template_input& input) const {
    jinja::runtime& rt = evaluate.rt();
    rt.now_unix_s = input.now_unix_s;
    jinja::scope root;
    jinja::add_globals(rt, root);
    root.set("bos_token", rt.make_text(bos_token));
    root.set("eos_token", rt.make_text(eos_token));
    const val messages = convert(rt, input.messages);
    evaluate.watch(messages);
    root.set("messages", messages);
    root.set("tools", convert(rt, input.tools));
    root.set("documents", val(jinja::none_t{}));
    root.set("add_generation_prompt", val(input.add_generation_prompt));
    for (const auto& [name, member] : input.extra)
      root.set(name, convert(rt, member));
    return evaluate.run(statements, root);
  }
};

chat_template::chat_template() : impl_(std::make_unique<impl>()) {}
chat_template::~chat_template() = default;

result<std::shared_ptr<const chat_template>>
chat_template::parse(std::string_view source, std::string bos_token, std::string eos_token) {
  if (source.size() > max_source_bytes)
    return failure{errc::bad_template, "chat template, must be at most " +
                                           std::to_string(max_source_bytes) + " bytes, given " +
                                           std::to_string(source.size())};
  if (!is_utf8(source) || !is_utf8(bos_token) || !is_utf8(eos_token))
    return failure{errc::bad_template, "chat template, must be valid UTF-8"};
  std::shared_ptr<chat_template> parsed(new chat_template);
  parsed->impl_->source = source;
  parsed->impl_->bos_token = std::move(bos_token);
  parsed->impl_->eos_token = std::move(eos_token);
  try {
    parsed->impl_->statements = jinja::parse_template(source);
  } catch (const jinja::template_error& error) {
    return failure{errc::bad_template, describe(error)};
  }
  return std::shared_ptr<const chat_template>(std::move(parsed));
}

result<rendered_prompt> chat_template::render(const template_input& input) const {
  jinja::runtime rt;
  jinja::evaluator evaluate(rt);
  try {
    jinja::text out = impl_->run(evaluate, input);
    return take_cut_marks(std::move(out));
  } catch (const jinja::template_error& error) {
    return failure{errc::template_failed, describe(error, evaluate.watched_item())};
  }
}

value chat_template::fit(const value& messages, const std::string& tool_text) const {
  std::call_once(impl_->tried, [this] {
    impl_->form = find_message_form(impl_->source, [this](const value& tried, const value& tools) {
      template_input input;
      input.messages = tried;
      input.tools = tools;
      input.add_generation_prompt = false;
      auto rendered = render(input);
      return rendered.ok() ? std::move(rendered).value().text : std::string();
    });
  });
  return fit_messages(messages, impl_->form, tool_text);
}

const std::string& chat_template::source() const {
  return impl_->source;
}

} // namespace twill::models
