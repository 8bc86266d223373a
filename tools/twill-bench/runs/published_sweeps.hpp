// published_sweeps: published sweeps of the same form, for rows beside one's own. Pure functions.
//
// They were measured on other hardware by other tools, so they are a scale, not a rival.
#pragma once

#include <string>
#include <vector>

#include "tools/twill-bench/runs/sweep.hpp"

namespace twill::bench {

struct reference {
  sweep figures;      ///< actual lengths are unknown: zero
  std::string remark; ///< where its figures mislead; may be empty
};

std::vector<std::string> reference_names();
/// Throws std::invalid_argument for an unknown name.
reference reference_sweep(const std::string& name);

} // namespace twill::bench
