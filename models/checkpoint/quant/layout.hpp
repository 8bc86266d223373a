// How a matrix's columns fall into groups of equal size, for packing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace twill::models::quant {

struct column_layout {
  std::int32_t group = 0;                 ///< columns per packed group; 0: there is no such size
  std::vector<std::int32_t> stored_group; // (cols / group) the file's group of each packed one
  std::shared_ptr<const std::vector<std::int32_t>> order; ///< null: columns as they are // (cols)
};

/// Sorts columns by group where they are not; the packed group is the largest that divides every
/// run of columns with equal scales, so a short last group repeats the terms of longer ones.
column_layout lay_out(std::span<const std::int32_t> group_of_column);

} // namespace twill::models::quant
