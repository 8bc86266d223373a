#include "tools/twill-bench/engine/saturation.hpp"

#include <cmath>
#include <cstddef>
#include <limits>

namespace twill::bench {
namespace {

constexpr std::size_t fewest_samples = 20;
constexpr double window_s = 60;
// Student's t for 18 degrees of freedom, one-sided at 99 %; with more degrees it is smaller.
constexpr double one_sided_99 = 2.54;
constexpr double least_growth = 0.5;

/// Fits a line by least squares. Returns true when it rises significantly and by enough.
bool rises(const std::deque<load_sample>& samples, double load_sample::*member) {
  const auto n = double(samples.size());
  double mean_t = 0, mean_y = 0;
  for (const load_sample& s : samples) {
    mean_t += s.at_s / n;
    mean_y += s.*member / n;
  }
  double tt = 0, ty = 0, yy = 0;
  for (const load_sample& s : samples) {
    tt += (s.at_s - mean_t) * (s.at_s - mean_t);
    ty += (s.at_s - mean_t) * (s.*member - mean_y);
    yy += (s.*member - mean_y) * (s.*member - mean_y);
  }
  if (tt <= 0 || mean_y <= 0) return false;
  const double slope = ty / tt;
  const double residual = std::fmax(0.0, yy - slope * ty) / (n - 2);
  const double error = std::sqrt(residual / tt);
  const double t = error > 0 ? slope / error : std::numeric_limits<double>::infinity();
  const double growth = slope * (samples.back().at_s - samples.front().at_s);
  return slope > 0 && t > one_sided_99 && growth > least_growth * mean_y;
}

} // namespace

void saturation_watch::add(const load_sample& sample) {
  samples_.push_back(sample);
  while (samples_.back().at_s - samples_.front().at_s > window_s)
    samples_.pop_front();
}

bool saturation_watch::over() const {
  return samples_.size() >= fewest_samples && rises(samples_, &load_sample::in_flight) &&
         rises(samples_, &load_sample::ttft_s);
}

} // namespace twill::bench
