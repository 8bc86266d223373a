#include "tools/twill/offload_machine.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/base/units.hpp"
#include "gpu/copies.hpp"
#include "gpu/host/machine.hpp"
#include "gpu/ops/linear.hpp"
#include "models/offload/block_store.hpp"
#include "models/offload/io_pool.hpp"
#include "tools/common/http_client.hpp"
#include "tools/twill/machine_cache.hpp"
#include "tools/twill/measure.hpp"
#include "tools/twill/must.hpp"

namespace twill::tools {
namespace {

using clock = std::chrono::steady_clock;
namespace offload = models::offload;

double seconds_of(const std::function<void()>& work) {
  const auto began = clock::now();
  work();
  return std::max(std::chrono::duration<double>(clock::now() - began).count(), 1e-9);
}

/// Best of some runs, after one that is not counted.
double least_seconds(int runs, const std::function<void()>& work) {
  work();
  double least = seconds_of(work);
  for (int i = 1; i < runs; ++i)
    least = std::min(least, seconds_of(work));
  return least;
}

/// Seconds of one product of `rows` rows with a matrix of ones.
double product_seconds(gpu::device& dev, gpu::compute_type compute, std::int64_t out_size,
                       std::int64_t in_size, std::int64_t rows) {
  const std::vector<std::uint16_t> ones(static_cast<std::size_t>(in_size), 0x3f80);
  gpu::weight_source source;
  source.kind = gpu::weight_kind::bf16;
  source.rows = out_size;
  source.cols = in_size;
  source.dense_row = [&](std::int64_t) -> const void* { return ones.data(); };
  const auto weights = must(gpu::pack(dev, source, "probe"));
  const auto floats = [&](std::int64_t n) {
    return must(dev.allocate(static_cast<std::size_t>(n) * sizeof(float), "probe"));
  };
  const auto x = floats(rows * in_size), y = floats(rows * out_size);
  gpu::linear_args args;
  args.x = gpu::view_2d(x.value().data(), gpu::dtype::f32, rows, in_size);
  args.out = gpu::view_2d(y.value().data(), gpu::dtype::f32, rows, out_size);
  args.weights = &weights.value();
  args.compute = compute;
  return least_seconds(5, [&] {
    gpu::linear(dev, args);
    dev.fence();
  });
}

struct link_rates {
  double to_device = 0, to_host = 0;
};

/// Copies as the streams make them, in a buffer that fits beside what is planned.
link_rates measure_copies(gpu::device& dev) {
  const auto bytes = static_cast<std::size_t>(
      std::clamp<std::int64_t>(dev.info().memory_bytes / 8, mib, 64 * mib));
  const auto there = must(dev.allocate(bytes, "probe"));
  const auto here = must(gpu::host_buffer::allocate(bytes, "probe"));
  gpu::copy_stream copies;
  void* const device = there.value().data();
  void* const host = here.value().data();
  const auto size = static_cast<double>(bytes);
  return {size / least_seconds(5, [&] { copies.to_device(device, host, bytes); }),
          size / least_seconds(5, [&] { copies.to_host(host, device, bytes); })};
}

struct disk_rates {
  double read = 0, write = 0;
};

disk_rates measure_store(const config::offload_options& options) {
  constexpr std::int64_t size = 256 * mib;
  const auto store =
      std::move(must(offload::open_file_store(options.dir, options.reads == "direct"))).value();
  const auto pool = std::move(must(offload::io_pool::start(options.io_threads))).value();
  const auto memory =
      std::move(must(gpu::host_buffer::allocate(static_cast<std::size_t>(size), "probe"))).value();
  for (std::int64_t at = 0; at < size; at += 4096)
    memory.data()[at] = static_cast<unsigned char>(at >> 12);
  disk_rates rates;
  rates.write = static_cast<double>(size) / seconds_of([&] {
                  const auto written = must(store->write(0, memory.data(), size));
                  static_cast<void>(written);
                });
  rates.read = static_cast<double>(size) / seconds_of([&] {
                 std::vector<offload::io_pool::task> reads;
                 for (std::int64_t at = 0; at < size; at += offload::transfer_bytes)
                   reads.push_back([&, at](offload::io_worker&) {
                     const auto got = store->read(at, memory.data() + at, offload::transfer_bytes);
                     static_cast<void>(got.ok()); // a failed read is a fast one; the run will tell
                   });
                 pool->run_all(std::move(reads));
               });
  return rates;
}

std::filesystem::path disk_folder(const config::options& options) {
  std::error_code failed;
  return options.offload.dir.empty() ? std::filesystem::temp_directory_path(failed)
                                     : std::filesystem::path(options.offload.dir);
}

/// Everything that rates depend on.
std::string key_of(gpu::device& dev, const models::model_spec& spec,
                   const models::compute_choice& types, const config::options& options) {
  const auto& info = dev.info();
  return info.name + ", " + std::to_string(info.threads) + " threads, " + TWILL_VERSION + ", " +
         gpu::name_of(types.compute) + " " + std::to_string(spec.mlp_size) + " x " +
         std::to_string(spec.hidden_size) + ", " + disk_folder(options).string() + " " +
         options.offload.reads + " " + std::to_string(options.offload.io_threads);
}

actors::machine_description measure_rates(gpu::device& dev, const models::model_spec& spec,
                                          const models::compute_choice& types,
                                          const config::options& options) {
  constexpr std::int64_t many_rows = 256;
  actors::machine_description on;
  const double product =
      product_seconds(dev, types.compute, spec.mlp_size, spec.hidden_size, many_rows);
  on.device_flops = 2.0 * many_rows * spec.mlp_size * spec.hidden_size / product;
  // A layer launches about a dozen ops; a product of almost nothing costs what a launch costs.
  on.square_overhead_s = 12 * product_seconds(dev, types.compute, 16, 16, 1);
  on.device_bytes_per_s = memory_read_bandwidth(dev.info().threads);
  on.host_flops = on.device_flops;
  on.host_bytes_per_s = on.device_bytes_per_s;
  const link_rates link = measure_copies(dev);
  on.h2d_bytes_per_s = link.to_device;
  on.d2h_bytes_per_s = link.to_host;
  const disk_rates disk = measure_store(options.offload);
  on.disk_read_bytes_per_s = disk.read;
  on.disk_write_bytes_per_s = disk.write;
  return on;
}

} // namespace

measured_machine measure_machine(gpu::device& dev, const models::model_spec& spec,
                                 const models::compute_choice& types,
                                 const config::options& options, bool anew) {
  measured_machine m;
  const std::string key = key_of(dev, spec, types, options);
  const auto known = anew ? std::nullopt : remembered_machine(key);
  m.remembered = known.has_value();
  m.on = known ? *known : measure_rates(dev, spec, types, options);
  if (!known) remember_machine(key, m.on);
  m.on.name = dev.info().name;
  m.on.one_processor = dev.info().kind == "host";
  m.on.device_bytes = static_cast<double>(dev.info().memory_bytes);
  m.on.host_bytes =
      static_cast<double>(options.offload.host_memory_bytes > 0 ? options.offload.host_memory_bytes
                                                                : gpu::host::available_bytes());
  std::error_code failed;
  m.on.disk_bytes =
      static_cast<double>(std::filesystem::space(disk_folder(options), failed).available);
  if (options.device.link_gbps > 0)
    m.on.h2d_bytes_per_s = m.on.d2h_bytes_per_s = 1e9 * options.device.link_gbps;
  return m;
}

} // namespace twill::tools
