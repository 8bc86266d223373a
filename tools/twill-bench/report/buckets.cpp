#include "tools/twill-bench/report/buckets.hpp"

#include <algorithm>
#include <cmath>

#include "tools/twill-bench/engine/stats.hpp"
#include "tools/twill-bench/engine/text.hpp"

namespace twill::bench {
namespace {

constexpr double wide_span = 30;

/// The smallest number of at least `least` that is 1, 2 or 5 times a power of ten.
double round_step(double least) {
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (least <= factor * power * (1 + 1e-9)) return factor * power;
  return 10 * power;
}

std::vector<double> equal_bounds(double low, double high, std::size_t wanted) {
  const double step = round_step(std::max(high - low, 1e-9) / double(wanted));
  std::vector<double> out;
  const double first = std::floor(low / step);
  for (std::size_t i = 0; i <= 2 * wanted; ++i) {
    const double bound = (first + double(i)) * step;
    if (i > 0 && bound > high) break;
    out.push_back(bound);
  }
  return out;
}

/// Round numbers from `low` to `high`, either 10 or 3 per power of ten, whichever gives about
/// `wanted` ranges.
std::vector<double> growing_bounds(double low, double high, std::size_t wanted) {
  const std::vector<double> fine{1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.3, 8}, coarse{1, 2, 5};
  const double decades = std::log10(high / low);
  const auto& factors = double(wanted) / std::max(decades, 0.1) > 6 ? fine : coarse;
  std::vector<double> out;
  for (double power = std::pow(10.0, std::floor(std::log10(low))); power <= high; power *= 10)
    for (const double factor : factors) {
      const double bound = factor * power;
      if (bound > high * (1 + 1e-9)) break;
      if (bound <= low * (1 + 1e-9))
        out.assign(1, bound);
      else
        out.push_back(bound);
    }
  return out;
}

} // namespace

std::size_t buckets::of(double value) const {
  const auto above = std::upper_bound(bounds.begin(), bounds.end(), value);
  return above == bounds.begin() ? 0 : static_cast<std::size_t>(above - bounds.begin() - 1);
}

std::vector<std::string> buckets::names() const {
  std::vector<std::string> out;
  double least = bounds.size() > 1 ? bounds[1] - bounds[0] : 1;
  for (std::size_t i = 1; i < bounds.size(); ++i)
    least = std::min(least, bounds[i] - bounds[i - 1]);
  const bool equal = bounds.size() < 3 ||
                     std::abs((bounds.back() - bounds[bounds.size() - 2]) - least) < 1e-9 * least;
  for (const double bound : bounds) {
    // Names of ranges with growing widths have two significant digits each.
    const double unit = equal ? least : std::max(bound, 1e-9) / 10;
    const int digits = std::clamp(static_cast<int>(std::ceil(-std::log10(unit) - 1e-9)), 0, 6);
    std::string name = fixed(bound, digits);
    if (name.find('.') != std::string::npos && !equal) {
      name.erase(name.find_last_not_of('0') + 1);
      if (name.back() == '.') name.pop_back();
    }
    out.push_back(std::move(name));
  }
  return out;
}

buckets buckets_for(std::vector<double> values, std::size_t wanted) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const double low = std::max(values.front(), 0.0), high = percentile(values, 99.5);
  // Values below a hundredth of the median share the first range with zeros.
  const double floor = std::max({low, percentile(values, 50) / 100, 1e-6});
  if (high / floor > wide_span) return {growing_bounds(floor, high, wanted)};
  return {equal_bounds(low, high, wanted)};
}

} // namespace twill::bench
