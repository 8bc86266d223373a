#include "models/offload/machine/measured_machine.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/base/least_seconds.hpp"
#include "config/base/units.hpp"
#include "gpu/attention/kv4.hpp"
#include "gpu/copy_stream.hpp"
#include "gpu/machine.hpp"
#include "models/decoder/gpu_error.hpp"
#include "models/offload/machine/layer_probe.hpp"
#include "models/offload/machine/machine_cache.hpp"
#include "models/offload/plan/plan_memory.hpp"
#include "models/offload/streams/checksum.hpp"
#include "models/offload/streams/disk_store.hpp"
#include "models/offload/streams/io_pool.hpp"

namespace twill::models::offload {
namespace {

/// The rate at which 4-bit KV of this model is unpacked, in values per second. KV of a type that
/// cannot be packed to 4 bits needs no unpacking, so its rate is practically infinite.
result<double> unpacking_rate(gpu::device& dev, const model_spec& spec, gpu::dtype type) {
  gpu::kv_layer kv;
  kv.type = type;
  kv.n_blocks = 32;
  kv.block_tokens = 16;
  kv.n_kv_heads = spec.n_kv_heads;
  kv.head_dim = spec.head_dim;
  if (!gpu::has_kv4(kv)) return 1e18;
  const std::int64_t values =
      std::int64_t{kv.n_blocks} * kv.block_tokens * kv.n_kv_heads * kv.head_dim;
  const std::int64_t stride = store_aligned(gpu::kv4_block_bytes(kv));
  const auto plain =
      dev.allocate(static_cast<std::size_t>(2 * values) * gpu::size_of(type), "probe");
  if (!plain.ok()) return from_gpu(plain.error());
  const auto packed = dev.allocate(static_cast<std::size_t>(kv.n_blocks * stride), "probe");
  if (!packed.ok()) return from_gpu(packed.error());
  kv.keys = plain.value().data();
  kv.values =
      static_cast<unsigned char*>(kv.keys) + static_cast<std::size_t>(values) * gpu::size_of(type);
  const double seconds = least_seconds(5, [&] {
    gpu::kv4_unpack(dev, kv, 0, kv.n_blocks, packed.value().data(), stride);
    dev.fence();
  });
  return static_cast<double>(2 * values) / seconds;
}

struct link_rates {
  double to_device = 0, to_host = 0;
};

/// Measures copies like those that streamed weights and KV need, to the device and back. The buffer
/// is small enough to fit beside the memory that the caller plans to use.
result<link_rates> measure_copies(gpu::device& dev) {
  const auto bytes = static_cast<std::size_t>(
      std::clamp<std::int64_t>(dev.info().memory_bytes / 8, mib, 64 * mib));
  const auto device_memory = dev.allocate(bytes, "probe");
  if (!device_memory.ok()) return from_gpu(device_memory.error());
  const auto host_memory = gpu::host_buffer::allocate(bytes, "probe");
  if (!host_memory.ok()) return from_gpu(host_memory.error());
  gpu::copy_stream copies;
  void* const device = device_memory.value().data();
  void* const host = host_memory.value().data();
  const auto size = static_cast<double>(bytes);
  gpu::result<nothing> up = nothing{}, down = nothing{};
  const link_rates rates{
      size / least_seconds(5, [&] { up = copies.to_device(device, host, bytes); }),
      size / least_seconds(5, [&] { down = copies.to_host(host, device, bytes); })};
  if (!up.ok()) return from_gpu(up.error());
  if (!down.ok()) return from_gpu(down.error());
  return rates;
}

struct disk_rates {
  double read = 0, write = 0;
  double cores = 0; ///< cores that reading and checking keep busy
};

/// The processor time of all threads of this process.
double processor_seconds() {
  std::timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Writes a file and reads it as a run with streamed weights would. If the device is the CPU, whose
/// device memory is host memory, reads go directly into it; otherwise they go into the buffers of
/// the I/O workers. The checksum of one read in `verify_every` is computed, as in such a run.
result<disk_rates> measure_store(gpu::device& dev, const config::offload_options& options) {
  constexpr std::int64_t size = 256 * mib;
  const std::int64_t room =
      std::clamp(dev.info().memory_bytes / 8, 2 * mib, 64 * mib) / transfer_bytes * transfer_bytes;
  const auto store = open_file_store(options.dir, options.reads == "direct");
  if (!store.ok()) return store.error();
  const auto pool = io_pool::start(options.io_threads);
  if (!pool.ok()) return pool.error();
  const auto target =
      dev.allocate(static_cast<std::size_t>(room), "probe", gpu::page_hint::filled_gradually);
  if (!target.ok()) return from_gpu(target.error());
  const auto source = gpu::host_buffer::allocate(static_cast<std::size_t>(size), "probe");
  if (!source.ok()) return from_gpu(source.error());
  for (std::int64_t at = 0; at < size; at += 4096)
    source.value().data()[at] = static_cast<unsigned char>(at >> 12);
  result<nothing> written = nothing{};
  disk_rates rates;
  rates.write = static_cast<double>(size) /
                seconds_of([&] { written = store.value()->write(0, source.value().data(), size); });
  if (!written.ok()) return written.error();
  const bool straight = gpu::device_memory_is_host();
  std::atomic<std::uint64_t> sums{0};
  const auto read = [&](std::int64_t at, io_worker& worker) {
    auto* to = straight ? static_cast<unsigned char*>(target.value().data()) + at % room
                        : worker.bounce.data();
    const auto read = store.value()->read(at, to, transfer_bytes);
    static_cast<void>(read.ok()); // a run will report a disk that fails
    if (at / transfer_bytes % options.verify_every == 0) sums += checksum(to, transfer_bytes);
  };
  const double busy_before = processor_seconds();
  const auto began = std::chrono::steady_clock::now();
  rates.read = static_cast<double>(size) / least_seconds(2, [&] {
                 std::vector<io_pool::task> reads;
                 for (std::int64_t at = 0; at < size; at += transfer_bytes)
                   reads.push_back([&, at](io_worker& worker) { read(at, worker); });
                 pool.value()->run_all(std::move(reads));
               });
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  rates.cores = (processor_seconds() - busy_before) / seconds;
  return rates;
}

std::filesystem::path disk_folder(const config::options& options) {
  std::error_code failed;
  return options.offload.dir.empty() ? std::filesystem::temp_directory_path(failed)
                                     : std::filesystem::path(options.offload.dir);
}

result<machine_description> measure_rates(gpu::device& dev, const model_spec& spec,
                                          const checkpoint& weights, const compute_choice& types,
                                          const offload_model& shape,
                                          const config::options& options) {
  machine_description on;
  on.device_bytes_per_s = gpu::machine::read_bandwidth(dev.info().threads);
  if (auto probed = probe_layer(dev, spec, weights, types, shape, probe_budget_s, on); !probed.ok())
    return probed.error();
  const auto unpacking = unpacking_rate(dev, spec, types.kv_type);
  if (!unpacking.ok()) return unpacking.error();
  const auto link = measure_copies(dev);
  if (!link.ok()) return link.error();
  const auto disk = measure_store(dev, options.offload);
  if (!disk.ok()) return disk.error();
  on.unpacked_values_per_s = unpacking.value();
  on.host_flops = on.device_flops;
  on.host_bytes_per_s = on.device_bytes_per_s;
  on.h2d_bytes_per_s = link.value().to_device;
  on.d2h_bytes_per_s = link.value().to_host;
  on.disk_read_bytes_per_s = disk.value().read;
  on.disk_write_bytes_per_s = disk.value().write;
  if (gpu::device_memory_is_host()) { // transfers take processor time from the compute
    on.disk_read_device_share = std::min(disk.value().cores / dev.info().threads, 1.0);
    on.copy_device_share = 1.0 / dev.info().threads;
  }
  return on;
}

} // namespace

std::string machine_key(const gpu::device_info& info, const model_spec& spec,
                        const compute_choice& types, const offload_model& shape,
                        const config::options& options) {
  return info.name + " " + info.isa + ", " + std::to_string(info.threads) + " threads, " +
         TWILL_VERSION + ", " + gpu::name_of(types.compute) + " " + gpu::name_of(types.kv_type) +
         ", " + spec.family + " KV " + std::to_string(spec.n_kv_heads) + " x " +
         std::to_string(spec.head_dim) + ", " + std::to_string(spec.mlp_size) + " x " +
         std::to_string(spec.hidden_size) + " in " +
         std::to_string(std::llround(layer_weight_bytes(shape))) + ", " +
         disk_folder(options).string() + " " + options.offload.reads + " " +
         std::to_string(options.offload.io_threads) + " " +
         std::to_string(options.offload.verify_every);
}

result<measured_machine> measure_machine(gpu::device& dev, const model_spec& spec,
                                         const checkpoint& weights, const compute_choice& types,
                                         const offload_model& shape, const config::options& options,
                                         measuring when) {
  measured_machine m;
  const std::string key = machine_key(dev.info(), spec, types, shape, options);
  const auto known = when == measuring::anew ? std::nullopt : remembered_machine(key);
  m.remembered = known.has_value();
  if (!known && when == measuring::never)
    return failure{errc::bad_option, std::string("the speeds of this machine are not measured")};
  if (known) {
    m.on = *known;
  } else {
    const auto measured = measure_rates(dev, spec, weights, types, shape, options);
    if (!measured.ok()) return measured.error();
    m.on = measured.value();
    remember_machine(key, m.on);
  }
  m.on.name = dev.info().name;
  m.on.one_processor = dev.memory_is_host();
  m.on.device_bytes = static_cast<double>(dev.info().memory_bytes);
  m.on.host_bytes =
      static_cast<double>(options.offload.host_memory_bytes > 0 ? options.offload.host_memory_bytes
                                                                : gpu::machine::available_bytes());
  std::error_code failed;
  m.on.disk_bytes =
      static_cast<double>(std::filesystem::space(disk_folder(options), failed).available);
  if (options.device.link_gbps > 0)
    m.on.h2d_bytes_per_s = m.on.d2h_bytes_per_s = 1e9 * options.device.link_gbps;
  return m;
}

} // namespace twill::models::offload
