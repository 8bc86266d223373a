#include "gpu/machine.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "config/base/least_seconds.hpp"
#include "config/base/units.hpp"

namespace twill::gpu::machine {
namespace {

/// Sums 8 independent lanes, so that loads and not additions limit the speed.
std::uint64_t sum_of(const std::uint64_t* data, std::size_t words) {
  std::uint64_t lanes[8] = {};
  for (std::size_t i = 0; i + 8 <= words; i += 8)
    for (std::size_t lane = 0; lane < 8; ++lane)
      lanes[lane] += data[i + lane];
  std::uint64_t sum = 0;
  for (const auto lane : lanes)
    sum += lane;
  return sum;
}

} // namespace

double read_bandwidth(std::int32_t threads) {
  const std::int64_t bytes = std::clamp(available_bytes() / 4, 16 * mib, 512 * mib);
  const auto words = static_cast<std::size_t>(bytes) / sizeof(std::uint64_t);
  const std::vector<std::uint64_t> data(words, 1);
  const std::size_t part = words / static_cast<std::size_t>(threads);
  std::atomic<std::uint64_t> sink{0};
  const double seconds = least_seconds(12, [&] {
    std::vector<std::thread> helpers;
    for (std::int32_t t = 1; t < threads; ++t)
      helpers.emplace_back(
          [&, t] { sink += sum_of(data.data() + static_cast<std::size_t>(t) * part, part); });
    sink += sum_of(data.data(), part);
    for (auto& helper : helpers)
      helper.join();
  });
  return static_cast<double>(bytes) / seconds;
}

} // namespace twill::gpu::machine
