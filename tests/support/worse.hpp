// worse: collects the largest error of many results.
#pragma once

#include <cmath>

namespace twill::test {

/// The larger error, or NaN if one is NaN, so that no bound holds for a result that is no number;
/// std::max(worst, NaN) is `worst`.
inline double worse(double worst, double error) {
  return error > worst || std::isnan(error) ? error : worst;
}

} // namespace twill::test
