// attribute_path: "a.b.0" as filters take it in attribute=; each part is looked up as an item.
#pragma once

#include <string_view>
#include <vector>

#include "models/text/template/runtime.hpp"
#include "models/text/template/value.hpp"

namespace twill::models::jinja {

class attribute_path {
public:
  /// `path`: a string, an integer, or None for the value itself.
  attribute_path(runtime& rt, const val* path);
  val get(runtime& rt, const val& object) const;
  /// As above; `otherwise` stands for every undefined step.
  val get(runtime& rt, const val& object, const val* otherwise) const;

private:
  std::vector<val> parts_;
};

/// Lower case for strings, anything else as it is: how sorting ignores case.
val ignore_case(runtime& rt, const val& v);
/// Sorts by `keys`, stably; fails when two keys cannot be compared.
std::vector<std::size_t> sorted_order(runtime& rt, const std::vector<val>& keys, bool reverse);

} // namespace twill::models::jinja
