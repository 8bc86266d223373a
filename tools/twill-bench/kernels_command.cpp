#include "tools/twill-bench/kernels_command.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>

#include "gpu/peak_rates.hpp"
#include "tools/twill-bench/kernels/cases.hpp"

namespace twill::bench {

namespace {

using clock = std::chrono::steady_clock;

struct kernels_arguments {
  gpu::device_config device;
  kernel_selection selection{{1, 16, 256}, {}, false};
  double seconds = 0.3;
};

double peak_of(const gpu::peak_rates& limits, gpu::compute_type type) {
  switch (type) {
  case gpu::compute_type::f32:
    return limits.f32_ops_per_s;
  case gpu::compute_type::bf16:
    return limits.bf16_ops_per_s;
  case gpu::compute_type::int8x2:
    return limits.int8_ops_per_s / 2;
  case gpu::compute_type::int8:
  case gpu::compute_type::w8a8:
    break;
  }
  return limits.int8_ops_per_s;
}

/// Median of the runs that fit in `seconds`, at least three.
double median_seconds(gpu::device& dev, const kernel_case& c, double seconds) {
  c.run();
  dev.fence();
  std::vector<double> times;
  const auto start = clock::now();
  while (times.size() < 3 || clock::now() - start < std::chrono::duration<double>(seconds)) {
    const auto begin = clock::now();
    c.run();
    dev.fence();
    times.push_back(std::chrono::duration<double>(clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                   times.end());
  return times[times.size() / 2];
}

void print_share(double rate, double limit) {
  if (limit > 0)
    std::printf(" %5.1f %%", 100 * rate / limit);
  else
    std::printf("       -");
}

int run(const kernels_arguments& arguments) {
  auto opened = gpu::device::open(arguments.device);
  if (!opened.ok()) throw std::runtime_error(opened.detail());
  gpu::device& dev = *opened.value();
  auto probe_opened = gpu::memory_probe::make(dev);
  if (!probe_opened.ok()) throw std::runtime_error(probe_opened.detail());
  const gpu::memory_probe& probe = probe_opened.value();
  const gpu::peak_rates peaks = gpu::measure_peaks(dev);
  const double first_read = probe.read_bytes_per_s();
  const gpu::device_info& info = dev.info();
  std::printf("%s, %s, %d threads, %s\n", info.name.c_str(), info.backend.c_str(), info.threads,
              info.isa.c_str());
  std::printf("limits: read %.1f GB/s; multiply-adds f32 %.0f, bf16 %.0f, int8 %.0f GOP/s\n\n",
              first_read / 1e9, peaks.f32_ops_per_s / 1e9, peaks.bf16_ops_per_s / 1e9,
              peaks.int8_ops_per_s / 1e9);
  std::printf("%-36s %-44s %10s %9s %8s %9s %8s\n", "op", "shape", "us", "GB/s", "of read", "GOP/s",
              "of peak");
  for_each_kernel_case(dev, arguments.selection, [&](const kernel_case& c) {
    const double seconds = median_seconds(dev, c, arguments.seconds);
    const double rate = c.bytes / seconds;
    // Near the limit, the limit of this very moment counts.
    const double read = rate > first_read / 3 ? probe.read_bytes_per_s() : first_read;
    std::printf("%-36s %-44s %10.1f %9.2f", c.op.c_str(), c.shape.c_str(), seconds * 1e6,
                rate / 1e9);
    print_share(rate, read);
    std::printf(" %9.1f", c.operations / seconds / 1e9);
    print_share(c.operations / seconds, peak_of(peaks, c.compute));
    std::printf("\n");
    std::fflush(stdout);
  });
  return 0;
}

} // namespace

void add_kernels_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<kernels_arguments>();
  CLI::App* command = app.add_subcommand(
      "kernels", "Times every op of gpu/ at the shapes of 7B, 13B and the default model, and "
                 "compares it with the measured limits of this machine.");
  command->add_option("--threads", arguments->device.threads,
                      "The number of compute threads; 0 means one per core.");
  command->add_option("--isa", arguments->device.isa,
                      "The widest instruction set that may be used: auto, plain, avx2, avx512, "
                      "avx512_vnni or avx512_bf16.");
  command
      ->add_option("--rows", arguments->selection.rows,
                   "The numbers of rows of activations, comma-separated.")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  command->add_option("--only", arguments->selection.only,
                      "Runs only the cases whose \"op shape\" contains this text.");
  command
      ->add_option("--seconds", arguments->seconds, "The seconds that each case is measured for.")
      ->check(CLI::Range(0.001, 60.0));
  command->add_flag("--small", arguments->selection.small, "Uses tiny shapes, to try the program.");
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

} // namespace twill::bench
