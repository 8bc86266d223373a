// repeats: summarises several runs of the same load. The functions are pure.
#pragma once

#include <string>
#include <vector>

#include "tools/twill-bench/engine/metrics.hpp"

namespace twill::bench {

/// A figure over all repeats: its mean, and half the width of its 95 % confidence interval by
/// Student's t.
struct repeated_figure {
  std::string name; ///< its key in the result file
  double mean = 0, half_width = 0;
  std::vector<double> values; // (n_repeats)
};

std::vector<repeated_figure> over_repeats(const std::vector<serve_metrics>& runs);

/// One line per figure: "name mean +- half width".
std::string repeats_table(const std::vector<repeated_figure>& figures);

/// The 97.5 % quantile of Student's t distribution.
double student_t_975(std::size_t degrees_of_freedom);

} // namespace twill::bench
