#include "gpu/peak_rates.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/detail/op_backends.hpp"
#include "gpu/detail/probe_backend.hpp"
#include "gpu/launch_timer.hpp"

namespace twill::gpu {

namespace {

/// Uses a sum, so that no compiler drops the reads.
void keep(std::uint64_t sum) {
  [[maybe_unused]] static volatile std::uint64_t kept;
  kept = sum;
}

constexpr std::int64_t probe_words = std::int64_t{64} << 20; // 512 MiB
constexpr timing_plan few_passes{.seconds = 0.1};

} // namespace

result<memory_probe> memory_probe::make(device& dev) {
  auto memory = dev.allocate(probe_words * 8, "memory_probe", page_hint::filled_gradually);
  if (!memory.ok()) return memory.error();
  // Without a write all pages would be the system's one page of zeros.
  constexpr std::int64_t run = std::int64_t{1} << 17;
  const std::vector<std::uint64_t> ones(run, 1);
  auto* words = static_cast<std::uint64_t*>(memory.value().data());
  for (std::int64_t at = 0; at < probe_words; at += run)
    dev.upload(words + at, ones.data(), run * 8);
  return memory_probe(dev, std::move(memory.value()));
}

double memory_probe::read_bytes_per_s() const {
  const detail::probe_backend& probe = dev_->ops().get<detail::probe_backend>();
  const auto* words = static_cast<const std::uint64_t*>(memory_.data());
  const launch_times times = time_launches(*dev_, few_passes, [&] {
    if (probe.begin_read != nullptr)
      probe.begin_read(*dev_, words, probe_words);
    else
      keep(probe.read(*dev_, words, probe_words));
  });
  return static_cast<double>(probe_words) * 8 / times.median();
}

double memory_probe::copy_bytes_per_s() const {
  const detail::probe_backend& probe = dev_->ops().get<detail::probe_backend>();
  if (probe.copy == nullptr) return 0;
  constexpr std::size_t half = probe_words * 4;
  auto* to = static_cast<char*>(memory_.data());
  const launch_times times =
      time_launches(*dev_, few_passes, [&] { probe.copy(*dev_, to, to + half, half); });
  return 2 * static_cast<double>(half) / times.median();
}

peak_rates measure_peaks(device& dev) {
  return dev.ops().get<detail::probe_backend>().peaks(dev);
}

} // namespace twill::gpu
