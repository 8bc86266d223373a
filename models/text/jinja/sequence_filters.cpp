#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/text/jinja/arguments.hpp"
#include "models/text/jinja/attribute_path.hpp"
#include "models/text/jinja/filters.hpp"
#include "models/text/jinja/operators.hpp"
#include "models/text/jinja/print.hpp"
#include "models/text/jinja/text_ops.hpp"

namespace twill::models::jinja {
namespace {

val new_list(evaluator& ev, std::vector<val> items, list_data::kind_t kind = list_data::list) {
  return val(ev.rt().make_list(kind, std::move(items)));
}

val list_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "list", args, {});
  return new_list(ev, ev.rt().iterate(input));
}

val first_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "first", args, {});
  const auto items = ev.rt().iterate(input);
  return items.empty() ? runtime::undefined("No first item, sequence was empty.") : items.front();
}

val last_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "last", args, {});
  if (const auto* l = input.as_list(); l && l->kind == list_data::generator)
    ev.rt().fail("'generator' object is not reversible");
  const auto items = ev.rt().iterate(input);
  return items.empty() ? runtime::undefined("No last item, sequence was empty.") : items.back();
}

val join_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "join", args, {"d", "attribute"});
  const text separator = a.get(0) ? to_text(ev.rt(), *a.get(0)) : text();
  const attribute_path path(ev.rt(), a.get(1));
  std::vector<text> parts;
  for (const val& item : ev.rt().iterate(input))
    parts.push_back(to_text(ev.rt(), path.get(ev.rt(), item)));
  return ev.rt().make_text(join(ev.rt(), separator, parts));
}

val items_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "items", args, {});
  std::vector<val> pairs;
  if (!input.is_undefined()) {
    if (input.as_dict() == nullptr) ev.rt().fail("Can only get item pairs from a mapping.");
    for (const auto& [key, member] : input.as_dict()->items)
      pairs.push_back(new_list(ev, {key, member}, list_data::tuple));
  }
  return new_list(ev, std::move(pairs), list_data::generator);
}

std::vector<val> pick(const std::vector<val>& items, const std::vector<std::size_t>& order) {
  std::vector<val> out;
  out.reserve(items.size());
  for (const std::size_t i : order)
    out.push_back(items[i]);
  return out;
}

val dictsort_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "dictsort", args, {"case_sensitive", "by", "reverse"});
  require_defined(ev.rt(), input);
  if (input.as_dict() == nullptr) ev.rt().fail("dictsort takes a dict, given " + type_name(input));
  const text* by = a.string(1);
  const bool by_value = by != nullptr && by->bytes == "value";
  if (by != nullptr && !by_value && by->bytes != "key")
    ev.rt().fail("You can only sort by either \"key\" or \"value\"");
  std::vector<val> pairs, keys;
  for (const auto& [key, member] : input.as_dict()->items) {
    pairs.push_back(new_list(ev, {key, member}, list_data::tuple));
    const val& sorted_by = by_value ? member : key;
    keys.push_back(a.flag(0, false) ? sorted_by : ignore_case(ev.rt(), sorted_by));
  }
  return new_list(ev, pick(pairs, sorted_order(ev.rt(), keys, a.flag(2, false))));
}

/// Makes the key by which `item` is sorted; `paths` has several entries if the template gives
/// several attributes, as in "a,b". As in Jinja, the key is a list even for one attribute: lists
/// with undefined values compare as equal, while two undefined values without a list cannot be
/// compared.
val sort_key(evaluator& ev, const std::vector<attribute_path>& paths, const val& item,
             bool case_sensitive) {
  std::vector<val> parts;
  for (const attribute_path& path : paths) {
    const val part = path.get(ev.rt(), item);
    parts.push_back(case_sensitive ? part : ignore_case(ev.rt(), part));
  }
  return new_list(ev, std::move(parts));
}

val sort_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "sort", args, {"reverse", "case_sensitive", "attribute"});
  std::vector<attribute_path> paths;
  if (const val* attribute = a.get(2); attribute != nullptr && attribute->as_text()) {
    const text comma(",");
    for (const text& one : split(ev.rt(), *attribute->as_text(), &comma, -1, false)) {
      const val path = ev.rt().make_text(one);
      paths.emplace_back(ev.rt(), &path);
    }
  } else {
    paths.emplace_back(ev.rt(), attribute);
  }
  const auto items = ev.rt().iterate(input);
  std::vector<val> keys;
  for (const val& item : items)
    keys.push_back(sort_key(ev, paths, item, a.flag(1, false)));
  return new_list(ev, pick(items, sorted_order(ev.rt(), keys, a.flag(0, false))));
}

val unique_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "unique", args, {"case_sensitive", "attribute"});
  const attribute_path path(ev.rt(), a.get(1));
  std::vector<val> kept, seen;
  for (const val& item : ev.rt().iterate(input)) {
    val key = path.get(ev.rt(), item);
    if (!a.flag(0, false)) key = ignore_case(ev.rt(), key);
    ev.rt().add_work(1 + seen.size() / 4);
    if (std::any_of(seen.begin(), seen.end(), [&](const val& s) { return equal(s, key); }))
      continue;
    seen.push_back(key);
    kept.push_back(item);
  }
  return new_list(ev, std::move(kept), list_data::generator);
}

val reverse_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "reverse", args, {});
  if (input.as_text()) return get_slice(ev.rt(), input, std::nullopt, std::nullopt, -1);
  auto items = ev.rt().iterate(input);
  std::reverse(items.begin(), items.end());
  return new_list(ev, std::move(items), list_data::generator);
}

template <bool Max>
val extreme_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), Max ? "max" : "min", args, {"case_sensitive", "attribute"});
  const attribute_path path(ev.rt(), a.get(1));
  const auto items = ev.rt().iterate(input);
  if (items.empty()) return runtime::undefined("No aggregated item, sequence was empty.");
  std::size_t best = 0;
  val best_key;
  for (std::size_t i = 0; i < items.size(); ++i) {
    val key = path.get(ev.rt(), items[i]);
    if (!a.flag(0, false)) key = ignore_case(ev.rt(), key);
    if (i > 0 && !apply_compare(ev.rt(), Max ? ">" : "<", key, best_key)) continue;
    best = i;
    best_key = std::move(key);
  }
  return items[best];
}

val sum_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "sum", args, {"attribute", "start"});
  const attribute_path path(ev.rt(), a.get(0));
  val total = a.get(1) == nullptr ? val(std::int64_t{0}) : *a.get(1);
  if (total.as_text()) ev.rt().fail("sum() can't sum strings");
  for (const val& item : ev.rt().iterate(input))
    total = apply_binary(ev.rt(), "+", total, path.get(ev.rt(), item));
  return total;
}

val batch_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "batch", args, {"linecount", "fill_with"}, 1);
  const std::int64_t size = a.whole(0, 1);
  if (size < 1 || size > 100'000) ev.rt().fail("batch: linecount must be 1 to 100000");
  std::vector<val> rows, row;
  const auto items = ev.rt().iterate(input);
  const auto n = static_cast<std::size_t>(size);
  for (const val& item : items) {
    if (row.size() == n) rows.push_back(new_list(ev, std::exchange(row, {})));
    row.push_back(item);
  }
  if (!row.empty()) {
    if (a.get(1) != nullptr && !a.get(1)->is_none()) row.resize(n, *a.get(1));
    rows.push_back(new_list(ev, std::move(row)));
  }
  return new_list(ev, std::move(rows), list_data::generator);
}

val slice_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "slice", args, {"slices", "fill_with"}, 1);
  const std::int64_t count = a.whole(0, 1);
  if (count < 1 || count > 100'000) ev.rt().fail("slice: slices must be 1 to 100000");
  const auto items = ev.rt().iterate(input);
  const auto n = static_cast<std::size_t>(count);
  const std::size_t each = items.size() / n, longer = items.size() % n;
  std::vector<val> rows;
  std::size_t at = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t size = each + (i < longer ? 1 : 0);
    std::vector<val> row(items.begin() + static_cast<std::ptrdiff_t>(at),
                         items.begin() + static_cast<std::ptrdiff_t>(at + size));
    at += size;
    if (a.get(1) != nullptr && !a.get(1)->is_none() && i >= longer) row.push_back(*a.get(1));
    rows.push_back(new_list(ev, std::move(row)));
  }
  return new_list(ev, std::move(rows), list_data::generator);
}

val groupby_filter(evaluator& ev, const val& input, const call_args& args) {
  const arguments a(ev.rt(), "groupby", args, {"attribute", "default", "case_sensitive"}, 1);
  const attribute_path path(ev.rt(), a.get(0));
  const auto items = ev.rt().iterate(input);
  std::vector<val> real_keys, keys;
  for (const val& item : items) {
    real_keys.push_back(path.get(ev.rt(), item, a.get(1)));
    keys.push_back(a.flag(2, false) ? real_keys.back() : ignore_case(ev.rt(), real_keys.back()));
  }
  const auto order = sorted_order(ev.rt(), keys, false);
  std::vector<val> groups;
  for (std::size_t i = 0; i < order.size();) {
    std::vector<val> members;
    const std::size_t first = order[i];
    for (; i < order.size() && equal(keys[order[i]], keys[first]); ++i)
      members.push_back(items[order[i]]);
    groups.push_back(
        new_list(ev, {real_keys[first], new_list(ev, std::move(members))}, list_data::tuple));
  }
  return new_list(ev, std::move(groups));
}

} // namespace

filter_fn find_sequence_filter(std::string_view name) {
  constexpr std::pair<std::string_view, filter_fn> filters[] = {
      {"list", list_filter},          {"first", first_filter},       {"last", last_filter},
      {"join", join_filter},          {"items", items_filter},       {"dictsort", dictsort_filter},
      {"sort", sort_filter},          {"unique", unique_filter},     {"reverse", reverse_filter},
      {"min", extreme_filter<false>}, {"max", extreme_filter<true>}, {"sum", sum_filter},
      {"batch", batch_filter},        {"slice", slice_filter},       {"groupby", groupby_filter},
  };
  for (const auto& [key, filter] : filters)
    if (key == name) return filter;
  return nullptr;
}

} // namespace twill::models::jinja
