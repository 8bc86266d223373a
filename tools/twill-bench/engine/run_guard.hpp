// run_guard: ends a run when its duration and the grace period have passed, or when the server is
// over-saturated (saturation.hpp). One thread calls ask() from time to time with the time that has
// passed.
#pragma once

#include <string>
#include <vector>

#include "tools/twill-bench/engine/options.hpp"
#include "tools/twill-bench/engine/run.hpp"
#include "tools/twill-bench/engine/saturation.hpp"

namespace twill::bench {

class run_guard {
public:
  enum class order {
    go_on,
    close, ///< send no further request
    stop,  ///< also end the requests that run
  };

  run_guard(const serve_options& options, const std::vector<double>& due_s)
      : options_(options), due_s_(due_s) {}

  order ask(double elapsed_s, const progress_counts& counts);
  /// Why the run was ended; empty when it was not.
  const std::string& reason() const { return reason_; }

private:
  bool saturated(double elapsed_s, const progress_counts& counts);

  const serve_options& options_;
  const std::vector<double>& due_s_; // in ascending order
  saturation_watch watch_;
  double sampled_s_ = 0;
  std::int64_t ttft_us_ = 0, ttfts_ = 0;
  std::string reason_;
};

} // namespace twill::bench
