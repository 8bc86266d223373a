// targets: the speeds that twill's kernels are meant to reach, each with the speed that the
// performance model of this folder predicts. The functions are pure.
//
// For the A100 and the A6000, shares of bandwidth refer to the data sheet. For the H100 and the
// H200, the targets are meant for a later run on a real GPU. Their shares refer to the measured
// rate of a kernel that only reads or copies. The products of one layer count as one figure: their
// total bytes divided by their total seconds, launches included.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/twill-bench/kernels/paper/cards.hpp"

namespace twill::bench::paper {

enum class unit : std::uint8_t { share, factor, us };

struct target {
  std::string what;  ///< "4 bits, 1 row: share of DRAM bandwidth"
  std::string where; ///< the model, and the other conditions of the figure
  double figure = 0, wanted = 0;
  unit in = unit::share;
  /// True: the figure must not exceed the target; false: it must reach the target.
  bool at_most = false;

  bool met() const { return at_most ? figure <= wanted : figure >= wanted; }
};

std::vector<target> targets_of(const card& on);

} // namespace twill::bench::paper
