#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "models/text/jinja/arguments.hpp"
#include "models/text/jinja/filters.hpp"
#include "models/text/jinja/operators.hpp"
#include "models/text/jinja/print.hpp"
#include "models/text/jinja/text_ops.hpp"
#include "models/text/tokenizer/unicode.hpp"

namespace twill::models::jinja {
namespace {

template <bool Upper>
val case_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), Upper ? "upper" : "lower", args, {});
  return ev.rt().make_text(with_case(to_text(ev.rt(), input), Upper));
}

val title_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "title", args, {});
  return ev.rt().make_text(title_words(to_text(ev.rt(), input)));
}

val capitalize_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "capitalize", args, {});
  return ev.rt().make_text(capitalize(to_text(ev.rt(), input)));
}

val trim_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "trim", args, {"chars"});
  return ev.rt().make_text(strip(to_text(ev.rt(), input), a.string(0), sides::both));
}

val string_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "string", args, {});
  return ev.rt().make_text(to_text(ev.rt(), input));
}

val same_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "safe", args, {});
  return input.as_text() ? input : ev.rt().make_text(to_text(ev.rt(), input));
}

val replace_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "replace", args, {"old", "new", "count"}, 2);
  const text from = to_text(ev.rt(), *a.get(0)), to = to_text(ev.rt(), *a.get(1));
  const std::int64_t most = a.get(2) && a.get(2)->is_none() ? -1 : a.whole(2, -1);
  return ev.rt().make_text(replace(ev.rt(), to_text(ev.rt(), input), from, to, most));
}

val escape_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "escape", args, {});
  const text source = to_text(ev.rt(), input);
  text out;
  for (std::size_t i = 0; i < source.bytes.size(); ++i) {
    const char c = source.bytes[i];
    const char* entity = c == '&'    ? "&amp;"
                         : c == '<'  ? "&lt;"
                         : c == '>'  ? "&gt;"
                         : c == '\'' ? "&#39;"
                         : c == '"'  ? "&#34;"
                                     : nullptr;
    if (entity != nullptr)
      out.append(entity, source.tainted());
    else
      out.append(source, i, i + 1);
  }
  return ev.rt().make_text(std::move(out));
}

val indent_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "indent", args, {"width", "first", "blank"});
  require_defined(ev.rt(), input);
  if (!input.as_text()) ev.rt().fail("indent takes a string, given " + type_name(input));
  text unit;
  if (a.get(0) && a.get(0)->as_text()) {
    unit = *a.get(0)->as_text();
  } else {
    const std::int64_t width = a.whole(0, 4);
    if (width > 1000) ev.rt().fail("indent: width must be <= 1000, given " + std::to_string(width));
    unit = text(std::string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' '));
  }
  text with_end = *input.as_text();
  with_end.append("\n"); // as in Jinja, a line end at the end begins one more line
  const auto lines = split_lines(with_end, false);
  ev.rt().charge_text(with_end.bytes.size() + lines.size() * unit.bytes.size());
  text out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.append("\n");
    const bool wanted = i == 0 ? a.flag(1, false) : a.flag(2, false) || !lines[i].bytes.empty();
    if (wanted) out.append(unit);
    out.append(lines[i]);
  }
  return ev.rt().make_text(std::move(out));
}

val format_filter(evaluator& ev, const val& input, const call_args& args) {
  const text format = to_text(ev.rt(), input);
  if (!args.positional.empty() && !args.named.empty())
    ev.rt().fail("format: positional and named arguments cannot be mixed");
  if (args.named.empty())
    return format_percent(ev.rt(), format,
                          val(ev.rt().make_list(list_data::tuple, args.positional)));
  dict_data* named = ev.rt().make_dict();
  for (const auto& [name, value] : args.named)
    ev.rt().set(*named, ev.rt().make_text(name), value);
  return format_percent(ev.rt(), format, val(named));
}

val center_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "center", args, {"width"});
  return ev.rt().make_text(pad(ev.rt(), to_text(ev.rt(), input), a.whole(0, 80), " ", 0));
}

val wordcount_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "wordcount", args, {});
  const text source = to_text(ev.rt(), input);
  std::int64_t n_words = 0;
  bool in_word = false;
  for (std::size_t at = 0; at < source.bytes.size();) {
    const bool was_in_word = std::exchange(in_word, is_word(next_character(source.bytes, at)));
    if (in_word && !was_in_word) ++n_words;
  }
  return val(n_words);
}

val truncate_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "truncate", args, {"length", "killwords", "end", "leeway"});
  const text source = to_text(ev.rt(), input);
  const std::int64_t length = a.whole(0, 255);
  const std::int64_t leeway = a.get(3) && a.get(3)->is_none() ? 5 : a.whole(3, 5);
  const text end = a.string(2) ? *a.string(2) : text("...");
  const auto offsets = character_offsets(source.bytes);
  const auto n = static_cast<std::int64_t>(offsets.size()) - 1;
  const auto end_length = static_cast<std::int64_t>(count_characters(end.bytes));
  if (length < end_length || leeway < 0) ev.rt().fail("truncate: length or leeway is too small");
  if (n <= length || n - length <= leeway) return ev.rt().make_text(source);
  text cut = slice_bytes(source, 0, offsets[static_cast<std::size_t>(length - end_length)]);
  if (!a.flag(1, false)) {
    const std::size_t space = cut.bytes.rfind(' ');
    if (space != std::string::npos) cut = slice_bytes(cut, 0, space);
  }
  cut.append(end);
  return ev.rt().make_text(std::move(cut));
}

} // namespace

filter_fn find_text_filter(std::string_view name) {
  constexpr std::pair<std::string_view, filter_fn> filters[] = {
      {"trim", trim_filter},
      {"upper", case_filter<true>},
      {"lower", case_filter<false>},
      {"title", title_filter},
      {"capitalize", capitalize_filter},
      {"string", string_filter},
      {"safe", same_filter},
      {"replace", replace_filter},
      {"escape", escape_filter},
      {"e", escape_filter},
      {"forceescape", escape_filter},
      {"indent", indent_filter},
      {"format", format_filter},
      {"center", center_filter},
      {"wordcount", wordcount_filter},
      {"truncate", truncate_filter},
  };
  for (const auto& [key, filter] : filters)
    if (key == name) return filter;
  return nullptr;
}

} // namespace twill::models::jinja
