#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "models/text/jinja/arguments.hpp"
#include "models/text/jinja/methods.hpp"

// Hugging Face renders templates in an immutable sandbox, where methods that change a list or a
// dict raise. This engine allows these methods, because other engines do, and because everything
// that a template can reach is a copy made for the current render.

namespace twill::models::jinja {
namespace {

val none() {
  return val(none_t{});
}

std::size_t require_index(runtime& rt, const list_data& l, std::int64_t i) {
  const auto n = static_cast<std::int64_t>(l.items.size());
  if (i < 0) i += n;
  if (i < 0 || i >= n) rt.fail("list index out of range");
  return static_cast<std::size_t>(i);
}

std::optional<std::size_t> find_in(const list_data& l, const val& v) {
  for (std::size_t i = 0; i < l.items.size(); ++i)
    if (equal(l.items[i], v)) return i;
  return std::nullopt;
}

val append_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, "append", args, {"item"}, 1);
  rt.charge_elements(1);
  self.as_list()->items.push_back(*a.get(0));
  return none();
}

val extend_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, "extend", args, {"items"}, 1);
  const auto more = rt.iterate(*a.get(0));
  rt.charge_elements(more.size());
  auto& items = self.as_list()->items;
  items.insert(items.end(), more.begin(), more.end());
  return none();
}

val insert_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, "insert", args, {"index", "item"}, 2);
  auto& items = self.as_list()->items;
  const auto n = static_cast<std::int64_t>(items.size());
  std::int64_t at = a.whole(0, 0);
  if (at < 0) at = std::max<std::int64_t>(at + n, 0);
  rt.charge_elements(1);
  rt.add_work(items.size() / 8);
  items.insert(items.begin() + std::min(at, n), *a.get(1));
  return none();
}

val list_pop_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, "pop", args, {"index"});
  auto& l = *self.as_list();
  if (l.items.empty()) rt.fail("pop from empty list");
  const std::size_t at = require_index(rt, l, a.whole(0, -1));
  val taken = l.items[at];
  rt.add_work(l.items.size() / 8);
  l.items.erase(l.items.begin() + static_cast<std::ptrdiff_t>(at));
  return taken;
}

val remove_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, "remove", args, {"item"}, 1);
  auto& l = *self.as_list();
  rt.add_work(l.items.size());
  const auto at = find_in(l, *a.get(0));
  if (!at) rt.fail("list.remove(x): x not in list");
  l.items.erase(l.items.begin() + static_cast<std::ptrdiff_t>(*at));
  return none();
}

val list_clear_method(runtime&, const val& self, const call_args&) {
  self.as_list()->items.clear();
  return none();
}

val reverse_method(runtime& rt, const val& self, const call_args&) {
  auto& items = self.as_list()->items;
  rt.add_work(items.size());
  std::reverse(items.begin(), items.end());
  return none();
}

val list_copy_method(runtime& rt, const val& self, const call_args&) {
  return val(rt.make_list(list_data::list, self.as_list()->items));
}

val index_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, "index", args, {"item"}, 1);
  rt.add_work(self.as_list()->items.size());
  const auto at = find_in(*self.as_list(), *a.get(0));
  if (!at) rt.fail("item is not in list");
  return val(static_cast<std::int64_t>(*at));
}

val count_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, "count", args, {"item"}, 1);
  const auto& items = self.as_list()->items;
  rt.add_work(items.size());
  return val(static_cast<std::int64_t>(std::count_if(
      items.begin(), items.end(), [&](const val& v) { return equal(v, *a.get(0)); })));
}

val items_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, "items", args, {});
  std::vector<val> pairs;
  for (const auto& [key, member] : self.as_dict()->items)
    pairs.push_back(val(rt.make_list(list_data::tuple, {key, member})));
  return val(rt.make_list(list_data::list, std::move(pairs)));
}

val keys_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, "keys", args, {});
  return val(rt.make_list(list_data::list, rt.iterate(self)));
}

val values_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, "values", args, {});
  std::vector<val> values;
  for (const auto& item : self.as_dict()->items)
    values.push_back(item.second);
  return val(rt.make_list(list_data::list, std::move(values)));
}

val get_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, "get", args, {"key", "default"}, 1);
  rt.add_work(self.as_dict()->items.size() / 8);
  if (const val* found = self.as_dict()->find(*a.get(0))) return *found;
  return a.get(1) == nullptr ? none() : *a.get(1);
}

val dict_pop_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, "pop", args, {"key", "default"}, 1);
  auto& items = self.as_dict()->items;
  rt.add_work(items.size());
  for (auto it = items.begin(); it != items.end(); ++it) {
    if (!equal(it->first, *a.get(0))) continue;
    val taken = it->second;
    items.erase(it);
    return taken;
  }
  if (a.get(1) == nullptr) rt.fail("dict.pop(): no such key");
  return *a.get(1);
}

val setdefault_method(runtime& rt, const val& self, const call_args& args) {
  const arguments a(rt, "setdefault", args, {"key", "default"}, 1);
  if (const val* found = self.as_dict()->find(*a.get(0))) return *found;
  const val fresh = a.get(1) == nullptr ? none() : *a.get(1);
  rt.set(*self.as_dict(), *a.get(0), fresh);
  return fresh;
}

val update_method(runtime& rt, const val& self, const call_args& args) {
  if (args.positional.size() > 1) rt.fail("update() takes at most one positional argument");
  auto& d = *self.as_dict();
  if (!args.positional.empty()) {
    const auto* other = args.positional[0].as_dict();
    if (other == nullptr) rt.fail("update() takes a dict, given " + type_name(args.positional[0]));
    const auto copy = other->items; // copied, because `other` may be the dict that is updated
    for (const auto& [key, member] : copy)
      rt.set(d, key, member);
  }
  for (const auto& [key, member] : args.named)
    rt.set(d, rt.make_text(key), member);
  return none();
}

val dict_copy_method(runtime& rt, const val& self, const call_args&) {
  dict_data* copy = rt.make_dict();
  rt.charge_elements(self.as_dict()->items.size());
  copy->items = self.as_dict()->items;
  return val(copy);
}

val dict_clear_method(runtime&, const val& self, const call_args&) {
  self.as_dict()->items.clear();
  return none();
}

struct named_method {
  std::string_view name;
  method_fn method;
};

constexpr named_method tuple_methods[] = {{"index", index_method}, {"count", count_method}};

constexpr named_method list_methods[] = {
    {"append", append_method},  {"extend", extend_method},   {"insert", insert_method},
    {"pop", list_pop_method},   {"remove", remove_method},   {"clear", list_clear_method},
    {"copy", list_copy_method}, {"reverse", reverse_method},
};

constexpr named_method dict_methods[] = {
    {"items", items_method},   {"keys", keys_method},      {"values", values_method},
    {"get", get_method},       {"pop", dict_pop_method},   {"setdefault", setdefault_method},
    {"update", update_method}, {"copy", dict_copy_method}, {"clear", dict_clear_method},
};

template <std::size_t N>
method_fn find(const named_method (&methods)[N], std::string_view name) {
  for (const named_method& m : methods)
    if (m.name == name) return m.method;
  return nullptr;
}

} // namespace

method_fn find_list_method(std::string_view name, bool is_tuple) {
  const method_fn shared = find(tuple_methods, name);
  return shared != nullptr || is_tuple ? shared : find(list_methods, name);
}

method_fn find_dict_method(std::string_view name) {
  return find(dict_methods, name);
}

method_fn find_method(const val& self, std::string_view name) {
  if (self.as_text()) return find_text_method(name);
  if (self.as_dict()) return find_dict_method(name);
  if (const auto* l = self.as_list(); l && l->kind != list_data::generator)
    return find_list_method(name, l->kind == list_data::tuple);
  return nullptr;
}

} // namespace twill::models::jinja
