// attribute_path: the path, such as "a.b.0", that filters take as the argument `attribute`. Each
// part of the path is looked up as an item of the value before it.
#pragma once

#include <string_view>
#include <vector>

#include "models/text/jinja/runtime.hpp"
#include "models/text/jinja/value.hpp"

namespace twill::models::jinja {

class attribute_path {
public:
  /// `path` is a string, an integer, or None for the value itself.
  attribute_path(runtime& rt, const val* path);
  val get(runtime& rt, const val& object) const;
  /// The value at the path, with `otherwise` in place of every part that is undefined.
  val get(runtime& rt, const val& object, const val* otherwise) const;

private:
  std::vector<val> parts_;
};

/// The key by which sorting ignores case: strings in lower case, all other values unchanged.
val ignore_case(runtime& rt, const val& v);
/// Sorts by `keys`, stably; fails when two keys cannot be compared.
std::vector<std::size_t> sorted_order(runtime& rt, const std::vector<val>& keys, bool reverse);

} // namespace twill::models::jinja
