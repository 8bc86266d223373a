// read_checks: decides which reads of stored bytes are compared with their checksum.
//
// Computing checksums takes 0.1 s of a core per GB. At 2 GB/s this is a fifth of a core, which
// compute cannot use where the device is the host's processor. A stretch (a range of bytes with one
// checksum) is therefore compared at its first read after it was written, and later at one read in
// `every`. Different stretches are compared at different reads, so a disk that begins to fail is
// noticed within `every` passes. Threads: any, as long as no stretch is written or read by two
// threads at once.
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
  /// Counts a read of the stretch. Returns true if this read must be compared.
  bool due(std::size_t stretch) {
    const std::size_t before = reads_[stretch]++; // wraps, which makes one comparison more
    return before == 0 || (before + stretch) % every_ == 0;
  }

private:
  std::size_t every_;
  std::vector<std::uint8_t> reads_;
};

} // namespace twill::models::offload
