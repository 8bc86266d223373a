// The portable form of peak_rates.hpp.
#pragma once

#include "gpu/detail/probe_backend.hpp"
#include "gpu/portable/launch.hpp"

namespace twill::gpu::detail {

template <class Launch>
struct probe_portable {
  static std::uint64_t read(device& dev, const std::uint64_t* words, std::int64_t n) {
    std::uint64_t total = 0; // reducing into a variable of the host waits for the result
    Kokkos::parallel_reduce(
        "read", typename Launch::range_policy(Launch::instance(dev), 0, n),
        KOKKOS_LAMBDA(const long i, std::uint64_t& sum) { sum += words[i]; }, total);
    return total;
  }
  /// No such measurement.
  static peak_rates peaks(device&) { return {}; }

  static constexpr probe_backend table{read, peaks};
};

} // namespace twill::gpu::detail
