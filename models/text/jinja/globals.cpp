#include "models/text/jinja/globals.hpp"

#include <algorithm>
#include <ctime>
#include <utility>

#include "models/text/jinja/arguments.hpp"
#include "models/text/jinja/methods.hpp"
#include "models/text/jinja/print.hpp"
#include "models/text/jinja/text_ops.hpp"

namespace twill::models::jinja {
namespace {

using function = val (*)(runtime& rt, const call_args& args);

struct builtin final : object {
  explicit builtin(function f) : run(f) {}
  std::string type_name() const override { return "function"; }
  bool callable() const override { return true; }
  val call(runtime& rt, call_args& args) override { return run(rt, args); }
  function run;
};

val range_function(runtime& rt, const call_args& args) {
  const arguments a(rt, "range", args, {"start", "stop", "step"}, 1);
  std::int64_t first = a.whole(0, 0), last = 0;
  const std::int64_t step = a.whole(2, 1);
  if (a.get(1) == nullptr)
    last = std::exchange(first, 0);
  else
    last = a.whole(1, 0);
  if (step == 0) rt.fail("range() arg 3 must not be zero");
  // Jinja's sandbox has the same limit.
  constexpr std::uint64_t most = 100'000;
  const auto distance = static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first);
  const bool empty = step > 0 ? first >= last : first <= last;
  const std::uint64_t way = step > 0 ? distance : ~distance + 1;
  const std::uint64_t stride =
      step > 0 ? static_cast<std::uint64_t>(step) : ~static_cast<std::uint64_t>(step) + 1;
  const std::uint64_t n = empty ? 0 : (way - 1) / stride + 1;
  if (n > most) rt.fail("range too big, at most 100000 items, given " + std::to_string(n));
  std::vector<val> items;
  items.reserve(n);
  for (std::uint64_t i = 0; i < n; ++i)
    items.push_back(val(first + static_cast<std::int64_t>(i) * step));
  return val(rt.make_list(list_data::list, std::move(items)));
}

val dict_function(runtime& rt, const call_args& args) {
  dict_data* d = rt.make_dict();
  if (args.positional.size() > 1) rt.fail("dict() takes at most one positional argument");
  if (!args.positional.empty()) {
    const val& source = args.positional[0];
    if (const auto* other = source.as_dict()) {
      for (const auto& [key, member] : other->items)
        rt.set(*d, key, member);
    } else {
      for (const val& pair : rt.iterate(source)) {
        const auto two = rt.iterate(pair);
        if (two.size() != 2) rt.fail("dict() takes pairs");
        rt.set(*d, two[0], two[1]);
      }
    }
  }
  for (const auto& [name, member] : args.named)
    rt.set(*d, rt.make_text(name), member);
  return val(d);
}

val namespace_function(runtime& rt, const call_args& args) {
  auto* ns = rt.make_object<namespace_object>();
  const val members = dict_function(rt, args);
  for (const auto& [key, member] : members.as_dict()->items) {
    if (key.as_text() == nullptr) rt.fail("namespace() takes names");
    ns->set(key.as_text()->bytes, member);
  }
  return val(ns);
}

val raise_function(runtime& rt, const call_args& args) {
  const arguments a(rt, "raise_exception", args, {"message"}, 1);
  rt.fail(to_text(rt, *a.get(0)).bytes);
}

val strftime_function(runtime& rt, const call_args& args) {
  const arguments a(rt, "strftime_now", args, {"format"}, 1);
  const text* format = a.string(0);
  if (format == nullptr || format->bytes.size() > 200)
    rt.fail("strftime_now() takes a short string");
  const std::time_t now = rt.now_unix_s != 0 ? rt.now_unix_s : std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char buffer[4096];
  const std::size_t n = std::strftime(buffer, sizeof buffer, format->bytes.c_str(), &parts);
  return rt.make_text(text(std::string(buffer, n), format->tainted()));
}

struct cycler_object final : object {
  std::string type_name() const override { return "Cycler"; }
  std::optional<val> attribute(std::string_view name) const override;
  std::vector<val> items;
  std::size_t at = 0;
  runtime* rt = nullptr;
};

val cycler_next(runtime&, const val& self, const call_args&) {
  auto& c = static_cast<cycler_object&>(*self.as_object());
  return c.items[std::exchange(c.at, (c.at + 1) % c.items.size())];
}

val cycler_reset(runtime&, const val& self, const call_args&) {
  static_cast<cycler_object&>(*self.as_object()).at = 0;
  return val(none_t{});
}

std::optional<val> cycler_object::attribute(std::string_view name) const {
  if (name == "current") return items[at];
  const method_fn method = name == "next" ? cycler_next : name == "reset" ? cycler_reset : nullptr;
  if (method == nullptr) return std::nullopt;
  return val(rt->make_object<bound_method>(val(const_cast<cycler_object*>(this)), method,
                                           std::string(name)));
}

val cycler_function(runtime& rt, const call_args& args) {
  if (args.positional.empty()) rt.fail("at least one item has to be provided");
  auto* c = rt.make_object<cycler_object>();
  c->items = args.positional;
  c->rt = &rt;
  return val(c);
}

struct joiner_object final : object {
  std::string type_name() const override { return "Joiner"; }
  bool callable() const override { return true; }
  val call(runtime& rt, call_args&) override {
    return std::exchange(used, true) ? separator : rt.make_text("");
  }
  val separator;
  bool used = false;
};

val joiner_function(runtime& rt, const call_args& args) {
  const arguments a(rt, "joiner", args, {"sep"});
  auto* j = rt.make_object<joiner_object>();
  j->separator = a.get(0) == nullptr ? rt.make_text(", ") : *a.get(0);
  return val(j);
}

} // namespace

std::optional<val> namespace_object::attribute(std::string_view name) const {
  for (const auto& [key, member] : members)
    if (key == name) return member;
  return std::nullopt;
}

void namespace_object::set(std::string_view name, val value) {
  for (auto& [key, member] : members) {
    if (key != name) continue;
    member = std::move(value);
    return;
  }
  members.emplace_back(std::string(name), std::move(value));
}

void add_globals(runtime& rt, scope& root) {
  constexpr std::pair<const char*, function> functions[] = {
      {"range", range_function},           {"dict", dict_function},
      {"namespace", namespace_function},   {"raise_exception", raise_function},
      {"strftime_now", strftime_function}, {"cycler", cycler_function},
      {"joiner", joiner_function},
  };
  for (const auto& [name, f] : functions)
    root.set(name, val(rt.make_object<builtin>(f)));
}

} // namespace twill::models::jinja
