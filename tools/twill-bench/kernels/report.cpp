#include "tools/twill-bench/kernels/report.hpp"

#include <cstdio>

#include <boost/json.hpp>

namespace twill::bench {

namespace {

namespace json = boost::json;

double peak_of(const gpu::peak_rates& peaks, gpu::compute_type type) {
  switch (type) {
  case gpu::compute_type::f32:
    return peaks.f32_ops_per_s;
  case gpu::compute_type::f16: // only GPUs have it, and they multiply f16 and bf16 equally fast
  case gpu::compute_type::bf16:
    return peaks.bf16_ops_per_s;
  case gpu::compute_type::int8x2:
    return peaks.int8_ops_per_s / 2;
  case gpu::compute_type::int8:
  case gpu::compute_type::w8a8:
    break;
  }
  return peaks.int8_ops_per_s;
}

void print_share(double rate, double limit) {
  if (limit > 0)
    std::printf(" %5.1f %%", 100 * rate / limit);
  else
    std::printf("       -");
}

/// The share that `rate` is of `limit`; null where there is no limit.
json::value share(double rate, double limit) {
  if (limit > 0) return rate / limit;
  return nullptr;
}

} // namespace

void kernel_report::device(const gpu::device_info& info, const ceilings& limits) {
  peaks_ = limits.peaks;
  std::printf("device: %s, %s, %s, %d threads, %s\n", info.kind.c_str(), info.name.c_str(),
              info.backend.c_str(), info.threads, info.isa.c_str());
  std::printf("limits: read %.1f GB/s, copy %.1f GB/s; multiply-adds f32 %.0f, bf16 %.0f, int8 "
              "%.0f GOP/s\n\n",
              limits.read_bytes_per_s / 1e9, limits.copy_bytes_per_s / 1e9,
              peaks_.f32_ops_per_s / 1e9, peaks_.bf16_ops_per_s / 1e9, peaks_.int8_ops_per_s / 1e9);
  std::printf("%-44s %-44s %10s %9s %8s %9s %8s %s\n", "op", "shape", "us", "GB/s", "of read",
              "GOP/s", "of peak", "timed by");
  std::fflush(stdout);
  json_.write(json::serialize(json::object{{"record", "device"},
                                           {"kind", info.kind},
                                           {"name", info.name},
                                           {"backend", info.backend},
                                           {"threads", info.threads},
                                           {"isa", info.isa},
                                           {"read_bytes_per_s", limits.read_bytes_per_s},
                                           {"copy_bytes_per_s", limits.copy_bytes_per_s},
                                           {"f32_ops_per_s", peaks_.f32_ops_per_s},
                                           {"bf16_ops_per_s", peaks_.bf16_ops_per_s},
                                           {"int8_ops_per_s", peaks_.int8_ops_per_s},
                                           {"cache_bytes", limits.cache_bytes},
                                           {"bytes_in_turn", limits.bytes_in_turn}}));
}

void kernel_report::measured(case_group group, const kernel_case& c, const gpu::launch_times& times,
                             double read_bytes_per_s) {
  const double seconds = times.median();
  const double bytes_per_s = c.bytes / seconds, ops_per_s = c.operations / seconds;
  const double peak = peak_of(peaks_, c.compute);
  std::printf("%-44s %-44s %10.1f %9.2f", c.op.c_str(), c.shape.c_str(), seconds * 1e6,
              bytes_per_s / 1e9);
  print_share(bytes_per_s, read_bytes_per_s);
  std::printf(" %9.1f", ops_per_s / 1e9);
  print_share(ops_per_s, peak);
  std::printf(" %s\n", gpu::name_of(times.how));
  std::fflush(stdout);
  json_.write(json::serialize(json::object{{"record", "case"},
                                           {"group", name_of(group)},
                                           {"op", c.op},
                                           {"shape", c.shape},
                                           {"timed_by", gpu::name_of(times.how)},
                                           {"samples", times.seconds.size()},
                                           {"us", seconds * 1e6},
                                           {"us_least", times.least() * 1e6},
                                           {"us_most", times.most() * 1e6},
                                           {"bytes", c.bytes},
                                           {"gb_per_s", bytes_per_s / 1e9},
                                           {"share_of_read", share(bytes_per_s, read_bytes_per_s)},
                                           {"operations", c.operations},
                                           {"ops_per_s", ops_per_s},
                                           {"share_of_peak", share(ops_per_s, peak)}}));
}

} // namespace twill::bench
