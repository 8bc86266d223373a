#include "tools/twill-bench/engine/run_guard.hpp"

#include <algorithm>
#include <cmath>

#include "tools/twill-bench/engine/text.hpp"

namespace twill::bench {

run_guard::order run_guard::ask(double elapsed_s, const progress_counts& counts) {
  if (options_.duration_limit && elapsed_s >= options_.duration_limit->count()) {
    reason_ = "after " + fixed(options_.duration_limit->count(), 1) + " s, as asked";
    return elapsed_s >= options_.duration_limit->count() + options_.grace.count() ? order::stop
                                                                                  : order::close;
  }
  if (options_.stop_over_saturation && saturated(elapsed_s, counts)) {
    reason_ = "after " + fixed(elapsed_s, 1) +
              " s: over-saturated, requests in flight and TTFT rise without end";
    return order::stop;
  }
  return order::go_on;
}

bool run_guard::saturated(double elapsed_s, const progress_counts& counts) {
  if (elapsed_s < sampled_s_ + 1) return false;
  sampled_s_ = elapsed_s;
  const auto due = std::upper_bound(due_s_.begin(), due_s_.end(), elapsed_s) - due_s_.begin();
  const std::int64_t ttft_us = counts.ttft_us, ttfts = counts.ttfts;
  if (ttfts == ttfts_) return false; // no first token since the previous sample: nothing to fit
  watch_.add({elapsed_s, double(due) - double(counts.ended),
              double(ttft_us - ttft_us_) / double(ttfts - ttfts_) * 1e-6});
  ttft_us_ = ttft_us;
  ttfts_ = ttfts;
  return watch_.over();
}

} // namespace twill::bench
