#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "models/text/jinja/attribute_path.hpp"
#include "models/text/jinja/filters.hpp"

// The filters map, select, reject, selectattr and rejectattr, which apply other filters and tests.
// Their results are generators, as in Jinja2: a generator is always true and can be read only once.

namespace twill::models::jinja {
namespace {

const std::string& name_of(evaluator& ev, const val& v) {
  if (v.as_text() == nullptr) ev.rt().fail("a filter or test is named by a string");
  return v.as_text()->bytes;
}

val as_generator(evaluator& ev, std::vector<val> items) {
  return val(ev.rt().make_list(list_data::generator, std::move(items)));
}

const val* named(const call_args& args, std::string_view name) {
  for (const auto& [key, argument] : args.named)
    if (key == name) return &argument;
  return nullptr;
}

call_args rest_of(const call_args& args, std::size_t from) {
  call_args rest;
  for (std::size_t i = from; i < args.positional.size(); ++i)
    rest.positional.push_back(args.positional[i]);
  rest.named = args.named;
  return rest;
}

val map_filter(evaluator& ev, const val& input, const call_args& args) {
  std::vector<val> out;
  if (const val* attribute = named(args, "attribute"); attribute && args.positional.empty()) {
    for (const auto& argument : args.named)
      if (argument.first != "attribute" && argument.first != "default")
        ev.rt().fail("map: unexpected keyword argument '" + argument.first + "'");
    const attribute_path path(ev.rt(), attribute);
    for (const val& item : ev.rt().iterate(input))
      out.push_back(path.get(ev.rt(), item, named(args, "default")));
    return as_generator(ev, std::move(out));
  }
  if (args.positional.empty()) ev.rt().fail("map requires a filter argument");
  const call_args rest = rest_of(args, 1);
  for (const val& item : ev.rt().iterate(input))
    out.push_back(ev.apply_filter(name_of(ev, args.positional[0]), item, rest));
  return as_generator(ev, std::move(out));
}

template <bool Keep, bool ByAttribute>
val select_filter(evaluator& ev, const val& input, const call_args& args) {
  const std::size_t at = ByAttribute ? 1 : 0; // position of the test's name
  if (ByAttribute && args.positional.empty()) ev.rt().fail("missing parameter for attribute name");
  const attribute_path path(ev.rt(), ByAttribute ? &args.positional[0] : nullptr);
  const bool has_test = args.positional.size() > at;
  const call_args rest = rest_of(args, at + 1);
  std::vector<val> out;
  for (const val& item : ev.rt().iterate(input)) {
    const val subject = path.get(ev.rt(), item);
    const bool holds =
        has_test ? ev.apply_test(name_of(ev, args.positional[at]), subject, rest) : truthy(subject);
    if (holds == Keep) out.push_back(item);
  }
  return as_generator(ev, std::move(out));
}

} // namespace

filter_fn find_selection_filter(std::string_view name) {
  constexpr std::pair<std::string_view, filter_fn> filters[] = {
      {"map", map_filter},
      {"select", select_filter<true, false>},
      {"reject", select_filter<false, false>},
      {"selectattr", select_filter<true, true>},
      {"rejectattr", select_filter<false, true>},
  };
  for (const auto& [key, filter] : filters)
    if (key == name) return filter;
  return nullptr;
}

} // namespace twill::models::jinja
