// published_sweeps: published figures of other servers over a grid of input and output lengths, in
// the form of sweep.hpp. Reports show their figures beside one's own. The functions are pure.
//
// They were measured on other hardware with other tools, so they give an order of magnitude, not a
// fair comparison.
#pragma once

#include <string>
#include <vector>

#include "tools/twill-bench/runs/sweep.hpp"

namespace twill::bench {

struct reference {
  sweep figures;      ///< lengths are 0, because the actual ones are unknown
  std::string remark; ///< where its figures are misleading; may be empty
};

std::vector<std::string> reference_names();
/// Throws std::invalid_argument for an unknown name.
reference reference_sweep(const std::string& name);

} // namespace twill::bench
