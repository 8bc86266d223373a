// saturation: detects when an open loop has outrun its server: requests in flight and the time to
// the first token both rise without end. Pure functions.
//
// Both are fitted by a straight line over the latest minute. The verdict needs 20 samples, slopes
// that differ from 0 by Student's t at 99 %, and growth over the window by half of its mean.
#pragma once

#include <deque>

namespace twill::bench {

struct load_sample {
  double at_s = 0;
  double in_flight = 0; ///< due and not ended
  double ttft_s = 0;    ///< mean of the requests that ended since the sample before
};

class saturation_watch {
public:
  void add(const load_sample& sample);
  bool over() const;

private:
  std::deque<load_sample> samples_;
};

} // namespace twill::bench
