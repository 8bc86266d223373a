// buckets: sorts values into a few ranges with round bounds, for charts. The functions are pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace twill::bench {

/// Adjoining ranges. The last range also contains all larger values.
struct buckets {
  std::vector<double> bounds; ///< the start of each range, ascending // (n_buckets)

  std::size_t of(double value) const;
  /// The start of each range, with as few digits as tell the ranges apart.
  std::vector<std::string> names() const;
};

/// About `wanted` ranges that cover the values. They have equal widths, unless the values span more
/// than a factor of 30: then the width of a range grows in proportion to its start. Values beyond
/// P99.5 are in the last range. Without values there are no ranges.
buckets buckets_for(std::vector<double> values, std::size_t wanted);

} // namespace twill::bench
