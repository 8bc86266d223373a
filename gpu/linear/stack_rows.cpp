#include <algorithm>
#include <utility>

#include "gpu/detail/packed_view.hpp"
#include "gpu/linear/packed_matrix.hpp"

namespace twill::gpu {

namespace {

using order_ptr = std::shared_ptr<const std::vector<std::int32_t>>;

/// Reads rows that may cross from one part into the next; parts are whole row panels.
void read_stacked_rows(const std::vector<weight_source>& parts, const grouped_rows& out) {
  std::int64_t part_begin = 0;
  const std::int64_t end = out.first_row + out.n_rows;
  for (const weight_source& part : parts) {
    const std::int64_t part_end = part_begin + part.rows;
    const std::int64_t first = std::max(out.first_row, part_begin);
    const std::int64_t n = std::min(end, part_end) - first;
    if (n > 0) {
      const std::int64_t before = first - out.first_row;
      const std::int64_t per_word = part.kind == weight_kind::grouped_u4 ? 8 : 4;
      const std::int64_t groups = part.cols / part.group;
      std::uint32_t* words =
          out.words == nullptr ? nullptr : out.words + before * (part.cols / per_word);
      part.grouped_panels({first - part_begin, n, words, out.scales + before * groups,
                           out.offsets + before * groups});
    }
    part_begin = part_end;
  }
}

bool same_order(const order_ptr& a, const order_ptr& b) {
  return a == b || (a && b && *a == *b);
}

} // namespace

std::optional<weight_source> stack_rows(std::vector<weight_source> parts) {
  if (parts.empty()) return std::nullopt;
  weight_source stacked;
  stacked.kind = parts[0].kind;
  stacked.cols = parts[0].cols;
  stacked.group = parts[0].group;
  stacked.code_group = parts[0].code_group;
  stacked.column_order = parts[0].column_order;
  std::vector<std::int64_t> ends;
  for (const weight_source& part : parts) {
    if (part.kind != stacked.kind || part.cols != stacked.cols || part.group != stacked.group ||
        part.code_group != stacked.code_group ||
        !same_order(part.column_order, stacked.column_order))
      return std::nullopt;
    stacked.rows += part.rows;
    ends.push_back(stacked.rows);
  }
  const auto shared = std::make_shared<const std::vector<weight_source>>(std::move(parts));
  // The part that holds a row, and the row's number in it.
  const auto find = [shared, ends](std::int64_t& row) -> const weight_source& {
    std::size_t i = 0;
    while (row >= ends[i])
      ++i;
    if (i > 0) row -= ends[i - 1];
    return (*shared)[i];
  };
  stacked.dense_row = [find](std::int64_t row) { return find(row).dense_row(row); };
  stacked.grouped = [find](std::int64_t row, const grouped_row& out) {
    find(row).grouped(row, out);
  };
  const bool in_panels = std::all_of(shared->begin(), shared->end(), [](const weight_source& part) {
    return part.grouped_panels && part.rows % detail::lanes == 0;
  });
  if (in_panels)
    stacked.grouped_panels = [shared](const grouped_rows& out) { read_stacked_rows(*shared, out); };
  return stacked;
}

} // namespace twill::gpu
