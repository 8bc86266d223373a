// buckets: values sorted into a few ranges with round bounds, for charts. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace twill::bench {

/// Ranges that follow each other; the last one takes everything above, too.
struct buckets {
  std::vector<double> bounds; ///< where each begins, rising // (n_buckets)

  std::size_t of(double value) const;
  std::vector<std::string> names() const; ///< where each begins, as few digits as tell them apart
};

/// About `wanted` ranges over the values: of equal width, or where the values span more than a
/// factor of 30, each about as wide as it is large. The tail beyond P99.5 shares the last one.
/// Empty without values.
buckets buckets_for(std::vector<double> values, std::size_t wanted);

} // namespace twill::bench
