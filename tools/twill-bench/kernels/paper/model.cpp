#include "tools/twill-bench/kernels/paper/model.hpp"

#include <algorithm>
#include <array>

#include "tools/twill-bench/kernels/paper/arithmetic.hpp"

namespace twill::bench::paper {

namespace {

/// Seconds for each bound.
using needs = std::array<double, n_bounds>;

double& at(needs& of, bound b) {
  return of[static_cast<std::size_t>(b)];
}

double longest(const needs& of) {
  return *std::max_element(of.begin(), of.end());
}

/// Returns the seconds that `n` thread blocks need for each bound; latency and fixed stay 0. The
/// busiest multiprocessor gets `on_busiest` of the blocks and runs `resident` of them at a time.
needs needs_of(const card& on, const kernel_counts& c, double n, double on_busiest,
               double resident) {
  const double part = n / static_cast<double>(c.blocks);
  const double busiest = c.busiest * on_busiest / static_cast<double>(c.blocks);
  const double sms = on.multiprocessors;
  needs of{};
  at(of, bound::dram) = part * c.dram_bytes / on.read_bytes_per_s();
  at(of, bound::l2) = std::max(part * c.l2_bytes / on.l2_bytes_per_s,
                               busiest * c.l2_bytes / (port_bytes_per_cycle * on.clock_hz));
  at(of, bound::issue) = busiest * c.warp_instructions /
                         (schedulers * on.clock_hz * issue_share(resident * c.warps_of_block));
  at(of, bound::tensor) =
      busiest * c.mmas * fma_of_mma / (on.tensor_fma_per_s * on.mma_share * c.tensor_share / sms);
  return of;
}

} // namespace

const char* name_of(bound b) {
  switch (b) {
  case bound::dram:
    return "DRAM";
  case bound::l2:
    return "L2";
  case bound::issue:
    return "issue";
  case bound::tensor:
    return "tensor";
  case bound::latency:
    return "latency";
  case bound::fixed:
    break;
  }
  return "launch";
}

double issue_share(double warps) {
  return std::min(most_issue_share, warps / schedulers / cycles_between_issues);
}

int blocks_at_once(const card& on, int threads, int registers_of_thread, int shared_bytes) {
  const int warps = (threads + 31) / 32;
  const int registers = warps * ((registers_of_thread * 32 + 255) / 256 * 256);
  return std::max(1, std::min({registers_of_multiprocessor / registers, on.threads / threads,
                               on.shared_bytes / (shared_bytes + shared_bytes_of_system)}));
}

predicted predict(const card& on, const kernel_counts& c) {
  const std::int64_t sms = on.multiprocessors;
  const std::int64_t slots = sms * c.blocks_at_once;
  const std::int64_t whole = c.blocks / slots, rest = c.blocks % slots;
  const double of_block = c.bytes_in_flight > 0
                              ? c.busiest * c.dram_bytes / static_cast<double>(c.blocks) /
                                    c.bytes_in_flight * on.dram_latency_s * loaded_latency
                              : 0;
  needs sum{};
  double body = 0;
  const auto add_rounds = [&](std::int64_t times, std::int64_t n) {
    const auto on_busiest = static_cast<double>((n + sms - 1) / sms);
    needs of = needs_of(on, c, static_cast<double>(n), on_busiest, on_busiest);
    at(of, bound::latency) = of_block;
    body += static_cast<double>(times) * longest(of);
    for (std::size_t i = 0; i < of.size(); ++i)
      sum[i] += static_cast<double>(times) * of[i];
  };
  if (whole > 0) add_rounds(whole, slots);
  if (rest > 0) add_rounds(1, rest);

  const auto blocks = static_cast<double>(c.blocks);
  const double even =
      longest(needs_of(on, c, blocks, blocks / static_cast<double>(sms), c.blocks_at_once));
  const std::int64_t rounds = c.blocks_at_once > 1 ? 1 : whole + (rest > 0 ? 1 : 0);
  at(sum, bound::fixed) =
      on.launch_s + static_cast<double>(rounds) * (c.first_loads * on.dram_latency_s + c.end_s);

  predicted p;
  p.seconds = body + at(sum, bound::fixed);
  p.by = static_cast<bound>(std::max_element(sum.begin(), sum.end()) - sum.begin());
  p.dram_share = c.dram_bytes / p.seconds / on.dram_bytes_per_s;
  p.waves = blocks / static_cast<double>(slots);
  p.wave_loss = std::max(0.0, (body - even) / p.seconds);
  return p;
}

} // namespace twill::bench::paper
