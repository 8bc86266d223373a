#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "models/text/jinja/methods.hpp"
#include "models/text/jinja/operators.hpp"

namespace twill::models::jinja {
namespace {

std::string quoted_type(const val& v) {
  return v.is_none() ? "'None'" : "'" + type_name(v) + " object'";
}

/// Returns the positions of the items, out of `n`, that a slice takes, in order (Python's
/// slice.indices).
std::vector<std::size_t> slice_positions(runtime& rt, std::int64_t n,
                                         std::optional<std::int64_t> start,
                                         std::optional<std::int64_t> stop, std::int64_t step) {
  const std::int64_t low = step > 0 ? 0 : -1;
  const std::int64_t high = step > 0 ? n : n - 1;
  const auto clamp = [&](std::optional<std::int64_t> bound, std::int64_t otherwise) {
    if (!bound) return otherwise;
    return std::clamp(*bound < 0 ? std::max(*bound, -n - 1) + n : *bound, low, high);
  };
  const std::int64_t first = clamp(start, step > 0 ? low : high);
  const std::int64_t last = clamp(stop, step > 0 ? high : low);
  // With a step longer than `n`, the second position is out of range too, so the step is clamped.
  step = std::clamp<std::int64_t>(step, -n - 1, n + 1);
  std::vector<std::size_t> positions;
  for (std::int64_t i = first; step > 0 ? i < last : i > last; i += step)
    positions.push_back(static_cast<std::size_t>(i));
  rt.add_work(positions.size());
  return positions;
}

/// Returns the position of index `i` among `n` items. Negative indices count from the end.
std::optional<std::size_t> position(std::int64_t i, std::size_t n) {
  const auto size = static_cast<std::int64_t>(n);
  if (i < 0) i += size;
  if (i < 0 || i >= size) return std::nullopt;
  return static_cast<std::size_t>(i);
}

std::optional<val> find_item(runtime& rt, const val& object, const val& key) {
  if (auto* d = object.as_dict()) {
    rt.add_work(d->items.size() / 8);
    const val* found = d->find(key);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  const auto index = key.whole();
  if (!index) return std::nullopt;
  if (const auto* l = object.as_list(); l && l->kind != list_data::generator) {
    const auto at = position(*index, l->items.size());
    return at ? std::optional(l->items[*at]) : std::nullopt;
  }
  if (const text* t = object.as_text()) {
    rt.add_work(t->bytes.size() / 64);
    const auto offsets = character_offsets(t->bytes);
    const auto at = position(*index, offsets.size() - 1);
    if (at) return rt.make_text(slice_bytes(*t, offsets[*at], offsets[*at + 1]));
  }
  return std::nullopt;
}

std::optional<val> find_attribute(runtime& rt, const val& object, std::string_view name) {
  if (name.substr(0, 2) == "__") return std::nullopt;
  if (const method_fn method = find_method(object, name))
    return val(rt.make_object<bound_method>(object, method, std::string(name)));
  if (const auto* o = object.as_object()) return o->attribute(name);
  return std::nullopt;
}

} // namespace

val get_attribute(runtime& rt, const val& object, std::string_view name) {
  require_defined(rt, object);
  if (auto found = find_attribute(rt, object, name)) return *found;
  if (auto* d = object.as_dict()) {
    rt.add_work(d->items.size() / 8);
    if (const val* found = d->find(name)) return *found;
  }
  return runtime::undefined(quoted_type(object) + " has no attribute '" + std::string(name) + "'");
}

val get_item(runtime& rt, const val& object, const val& key) {
  require_defined(rt, object);
  if (auto found = find_item(rt, object, key)) return *found;
  const text* name = key.as_text();
  if (name != nullptr)
    if (auto found = find_attribute(rt, object, name->bytes)) return *found;
  return runtime::undefined(quoted_type(object) + " has no element " +
                            (name ? "'" + name->bytes + "'" : "at this index"));
}

val get_slice(runtime& rt, const val& object, std::optional<std::int64_t> start,
              std::optional<std::int64_t> stop, std::optional<std::int64_t> step) {
  require_defined(rt, object);
  const std::int64_t by = step.value_or(1);
  if (by == 0) rt.fail("slice step cannot be zero");
  if (const text* t = object.as_text()) {
    rt.add_work(t->bytes.size() / 64);
    const auto offsets = character_offsets(t->bytes);
    const auto n = static_cast<std::int64_t>(offsets.size()) - 1;
    const auto positions = slice_positions(rt, n, start, stop, by);
    if (positions.empty()) return rt.make_text(text());
    if (by == 1)
      return rt.make_text(
          slice_bytes(*t, offsets[positions.front()], offsets[positions.back() + 1]));
    text out;
    for (const std::size_t i : positions)
      out.append(*t, offsets[i], offsets[i + 1]);
    return rt.make_text(std::move(out));
  }
  const auto* l = object.as_list();
  if (l == nullptr || l->kind == list_data::generator)
    return runtime::undefined(quoted_type(object) + " cannot be sliced");
  std::vector<val> items;
  for (const std::size_t i :
       slice_positions(rt, static_cast<std::int64_t>(l->items.size()), start, stop, by))
    items.push_back(l->items[i]);
  return val(rt.make_list(l->kind, std::move(items)));
}

} // namespace twill::models::jinja
