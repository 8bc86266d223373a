#include "models/checkpoint/quant/layout.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace twill::models::quant {

column_layout lay_out(std::span<const std::int32_t> group_of_column) {
  column_layout layout;
  const std::size_t cols = group_of_column.size();
  std::vector<std::int32_t> order(cols);
  std::iota(order.begin(), order.end(), 0);
  const auto group_at = [&](std::size_t packed) {
    return group_of_column[static_cast<std::size_t>(order[packed])];
  };
  if (!std::is_sorted(group_of_column.begin(), group_of_column.end()))
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return group_of_column[static_cast<std::size_t>(a)] <
             group_of_column[static_cast<std::size_t>(b)];
    });

  // `size` becomes the greatest common divisor of the lengths of all runs of columns in one group.
  std::size_t size = 0;
  for (std::size_t first = 0, at = 1; at <= cols; ++at) {
    if (at < cols && group_at(at) == group_at(first)) continue;
    size = std::gcd(size, at - first);
    first = at;
  }
  if (size == 0 || size % 8 != 0) return layout;
  layout.group = static_cast<std::int32_t>(size);
  for (std::size_t at = 0; at < cols; at += size)
    layout.stored_group.push_back(group_at(at));
  if (!std::is_sorted(order.begin(), order.end()))
    layout.order = std::make_shared<const std::vector<std::int32_t>>(std::move(order));
  return layout;
}

} // namespace twill::models::quant
