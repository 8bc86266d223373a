// targets: the speeds that twill's kernels are meant to reach, and what the model on paper
// says of each. Pure functions.
//
// On A100 and A6000, shares of bandwidth are held against the data sheet's. H100 and H200 have the
// marks of the run on a GPU that is to follow, which holds against a kernel that only reads or
// copies. A layer's products count as one: their bytes over their seconds, launches included.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/twill-bench/kernels/paper/cards.hpp"

namespace twill::bench::paper {

enum class unit : std::uint8_t { share, factor, us };

struct target {
  std::string what;  ///< "4 bits, 1 row: share of DRAM bandwidth"
  std::string where; ///< the model, and what else the figure is of
  double figure = 0, wanted = 0;
  unit in = unit::share;
  bool at_most = false; ///< the figure may be at most what is wanted; else it is at least that

  bool met() const { return at_most ? figure <= wanted : figure >= wanted; }
};

std::vector<target> targets_of(const card& on);

} // namespace twill::bench::paper
