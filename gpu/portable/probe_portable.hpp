// The portable implementation of peak_rates.hpp.
#pragma once

#include "gpu/detail/probe_backend.hpp"
#include "gpu/portable/launch.hpp"

namespace twill::gpu::detail {

template <class Launch>
struct probe_portable {
  static std::uint64_t read(device& dev, const std::uint64_t* words, std::int64_t n) {
    return Launch::sum(
        dev, "read", n, KOKKOS_LAMBDA(const long i, std::uint64_t& sum) { sum += words[i]; });
  }
  /// The portable backend cannot measure arithmetic rates.
  static peak_rates peaks(device&) { return {}; }

  static constexpr probe_backend table{read, peaks};
};

} // namespace twill::gpu::detail
