// saturation: detects when a server cannot keep up with an open loop: both the requests in flight
// and the time to the first token keep rising. The functions are pure.
//
// A straight line is fitted to each of the two over the latest minute. The server counts as
// saturated when there are at least 20 samples, both slopes are above 0 by Student's t at 99 %, and
// both lines rise within the minute by more than half of their mean.
#pragma once

#include <deque>

namespace twill::bench {

struct load_sample {
  double at_s = 0;
  double in_flight = 0; ///< due but not ended
  double ttft_s = 0;    ///< mean of the requests that ended since the previous sample
};

class saturation_watch {
public:
  void add(const load_sample& sample);
  bool over() const;

private:
  std::deque<load_sample> samples_;
};

} // namespace twill::bench
