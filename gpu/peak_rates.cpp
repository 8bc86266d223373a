#include "gpu/peak_rates.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "gpu/detail/op_backends.hpp"
#include "gpu/detail/probe_backend.hpp"
#include "gpu/host/thread_pool.hpp"
#include "gpu/linear/host/kernels.hpp"

namespace twill::gpu {

namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point start) {
  return std::chrono::duration<double>(clock::now() - start).count();
}

/// The rates of a few runs, ascending.
template <class F>
std::array<double, 5> rates_of(const F& amount_of_run) {
  std::array<double, 5> rates{};
  for (double& rate : rates) {
    const auto start = clock::now();
    const double amount = amount_of_run();
    rate = amount / seconds_since(start);
  }
  std::sort(rates.begin(), rates.end());
  return rates;
}

/// Uses a sum, so that no compiler drops the reads.
void keep(std::uint64_t sum) {
  [[maybe_unused]] static volatile std::uint64_t kept;
  kept = sum;
}

constexpr std::int64_t read_words = std::int64_t{64} << 20; // 512 MiB

std::uint64_t read_on_host(device& dev, const std::uint64_t* words, std::int64_t n) {
  constexpr std::int64_t part_words = std::int64_t{1} << 18;
  std::atomic<std::uint64_t> total{0};
  dev.pool().run(n / part_words, [&](std::int64_t part) {
    std::uint64_t sum = 0;
    for (std::int64_t i = part * part_words; i < (part + 1) * part_words; ++i)
      sum += words[i];
    total.fetch_add(sum, std::memory_order_relaxed);
  });
  return total;
}

double peak_on_host(device& dev, compute_type type) {
  const host::kernels& kernels = host::kernels_for(dev.isa());
  constexpr std::int64_t rounds = 100000;
  // The best run counts, since other processes only ever take speed away.
  return rates_of([&] {
           std::atomic<std::int64_t> operations{0};
           dev.pool().run(dev.info().threads, [&](std::int64_t) {
             alignas(64) float sink[16];
             operations.fetch_add(kernels.spin(type, rounds, sink), std::memory_order_relaxed);
           });
           return static_cast<double>(operations.load());
         })
      .back();
}

peak_rates peaks_on_host(device& dev) {
  return {peak_on_host(dev, compute_type::f32), peak_on_host(dev, compute_type::bf16),
          peak_on_host(dev, compute_type::int8)};
}

} // namespace

constinit const detail::probe_backend detail::host_probe{read_on_host, peaks_on_host};

result<read_probe> read_probe::make(device& dev) {
  auto memory = dev.allocate(read_words * 8, "read_probe", page_hint::filled_gradually);
  if (!memory.ok()) return memory.error();
  // Without a write all pages would be the system's one page of zeros.
  constexpr std::int64_t run = std::int64_t{1} << 17;
  const std::vector<std::uint64_t> ones(run, 1);
  auto* words = static_cast<std::uint64_t*>(memory.value().data());
  for (std::int64_t at = 0; at < read_words; at += run)
    dev.upload(words + at, ones.data(), run * 8);
  return read_probe(dev, std::move(memory.value()));
}

double read_probe::bytes_per_s() const {
  const auto* words = static_cast<const std::uint64_t*>(memory_.data());
  const auto rates = rates_of([&] {
    keep(dev_->ops().get<detail::probe_backend>().read(*dev_, words, read_words));
    return static_cast<double>(read_words) * 8;
  });
  return rates[rates.size() / 2];
}

peak_rates measure_peaks(device& dev) {
  return dev.ops().get<detail::probe_backend>().peaks(dev);
}

} // namespace twill::gpu
