// layout: divides the columns of a matrix into groups of equal size, for packing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace twill::models::quant {

struct column_layout {
  std::int32_t group = 0; ///< columns per packed group; 0 when there is no such size
  std::vector<std::int32_t> stored_group; // (cols / group) the file's group of each packed group
  /// Null when columns keep their places. // (cols)
  std::shared_ptr<const std::vector<std::int32_t>> order;
};

/// Sorts columns by their group in the file if they are not sorted already, and divides them into
/// packed groups, the groups of the matrix that twill packs for its kernels. The file's groups may
/// have different sizes. All packed groups have one size: the largest that divides the number of
/// columns of every group in the file. A group of the file may become several packed groups, which
/// then have equal scales and offsets.
column_layout lay_out(std::span<const std::int32_t> group_of_column);

} // namespace twill::models::quant
