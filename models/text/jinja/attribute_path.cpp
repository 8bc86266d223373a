#include "models/text/jinja/attribute_path.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string>

#include "models/text/jinja/operators.hpp"
#include "models/text/jinja/text_ops.hpp"

namespace twill::models::jinja {

attribute_path::attribute_path(runtime& rt, const val* path) {
  if (path == nullptr || path->is_none()) return;
  if (path->whole()) {
    parts_.push_back(*path);
    return;
  }
  if (path->as_text() == nullptr) rt.fail("attribute must be a name, given " + type_name(*path));
  const text dot(".");
  for (const text& part : split(rt, *path->as_text(), &dot, -1, false)) {
    const std::string& s = part.bytes;
    const bool is_number =
        !s.empty() && s.size() < 10 &&
        std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
    parts_.push_back(is_number ? val(std::int64_t{std::atoi(s.c_str())}) : rt.make_text(part));
  }
}

val attribute_path::get(runtime& rt, const val& object) const {
  return get(rt, object, nullptr);
}

val attribute_path::get(runtime& rt, const val& object, const val* otherwise) const {
  val current = object;
  for (const val& part : parts_) {
    current = get_item(rt, current, part);
    if (otherwise != nullptr && !otherwise->is_none() && current.is_undefined())
      current = *otherwise;
  }
  return current;
}

val ignore_case(runtime& rt, const val& v) {
  return v.as_text() ? rt.make_text(with_case(*v.as_text(), false)) : v;
}

std::vector<std::size_t> sorted_order(runtime& rt, const std::vector<val>& keys, bool reverse) {
  std::vector<std::size_t> order(keys.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  rt.add_work(keys.size() * 8);
  // A failing comparison throws an exception out of the sort. This is safe: `order` stays valid and
  // is discarded.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return reverse ? apply_compare(rt, "<", keys[b], keys[a])
                   : apply_compare(rt, "<", keys[a], keys[b]);
  });
  return order;
}

} // namespace twill::models::jinja
