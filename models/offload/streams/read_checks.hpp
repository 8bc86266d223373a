// read_checks: which reads of stored bytes are compared with their checksum.
//
// Summing all that is read takes 0.1 s of a core per GB: a fifth of one at 2 GB/s, taken from the
// compute where the device is the host's processor. So a stretch is compared when it is read for
// the first time after it was written, and then in one read of `every`, another stretch each time:
// a disk that turns bad is noticed within as many passes.
// Threads: any, as long as no stretch is written or read twice at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace twill::models::offload {

class read_checks {
public:
  /// `every`: 1 or more; 1 compares each read.
  explicit read_checks(std::int32_t every = 1, std::size_t stretches = 0)
      : every_(static_cast<std::size_t>(every)), reads_(stretches, 0) {}

  void add_stretch() { reads_.push_back(0); }
  void written(std::size_t stretch) { reads_[stretch] = 0; }
  /// Counts a read. True: compare it.
  bool due(std::size_t stretch) {
    const std::size_t before = reads_[stretch]++; // wraps, which makes one comparison more
    return before == 0 || (before + stretch) % every_ == 0;
  }

private:
  std::size_t every_;
  std::vector<std::uint8_t> reads_;
};

} // namespace twill::models::offload
