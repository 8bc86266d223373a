#include "tools/twill/offload/plan.hpp"

#include <cstdio>
#include <utility>

#include "gpu/attention/kv4.hpp"
#include "models/compute.hpp"
#include "models/kv_shape.hpp"
#include "models/offload/machine/measured_machine.hpp"
#include "models/offload/model_shape.hpp"
#include "models/offload/plan/plan_memory.hpp"
#include "models/offload/plan/planner.hpp"
#include "models/offload/plan/simulation.hpp"
#include "models/offload/streams/disk_store.hpp"
#include "tools/twill/must.hpp"
#include "tools/twill/offload/draw_timeline.hpp"

namespace twill::tools {

namespace {

void print(const models::offload::plan_request& request, const models::offload::offload_plan& found,
           const models::offload::simulation_result& played, bool remembered) {
  const auto& on = request.machine;
  const auto& p = found.policy;
  std::printf(
      "measured%s: %.0f Gflop/s, memory %.1f GB/s, to device %.1f GB/s, disk %.2f GB/s read, "
      "%.2f GB/s written\n",
      remembered ? " by an earlier run (--remeasure)" : "", on.device_flops / 1e9,
      on.device_bytes_per_s / 1e9, on.h2d_bytes_per_s / 1e9, on.disk_read_bytes_per_s / 1e9,
      on.disk_write_bytes_per_s / 1e9);
  std::printf("plan: --search-order %s --gpu-batch-size %d --num-gpu-batches %d --percent %.0f "
              "%.0f %.0f %.0f %.0f %.0f (%ld policies tried)\n",
              name_of(p.order), p.batch_size, p.n_batches, 100 * p.weights.device,
              100 * p.weights.host, 100 * p.kv.device, 100 * p.kv.host, 100 * p.hidden.device,
              100 * p.hidden.host, static_cast<long>(found.n_tried));
  std::printf("projected: %.1f token/s, prefill %.2f s, decode %.2f s, bound by %s\n",
              found.estimate.tokens_per_s, found.estimate.prefill_s, found.estimate.decode_s,
              name_of(found.estimate.busy.busiest()));
  std::printf("simulated task by task: %.1f token/s\n", played.tokens_per_s);
  const auto peak = found.memory.peak();
  std::printf("projected memory: device %s, host %s, disk %s\n",
              models::offload::gb_text(peak.device).c_str(),
              models::offload::gb_text(peak.host).c_str(),
              models::offload::gb_text(peak.disk).c_str());
  std::fflush(stdout);
}

/// The bytes per KV value of blocks that are packed to 4 bits and stored in host memory or on disk.
/// A stored block takes a whole number of 4096-byte pages, which this figure includes; see
/// models/offload/streams/kv_backing.hpp.
double packed_kv_bytes(const models::model_spec& spec, gpu::dtype type,
                       const config::options& options) {
  gpu::kv_layer block = models::kv_shape(spec, type, options.kv.block_tokens);
  block.n_blocks = 1;
  if (!gpu::has_kv4(block)) return 0; // describe_run() reports the error
  return static_cast<double>(models::offload::store_aligned(gpu::kv4_block_bytes(block))) /
         (2.0 * block.block_tokens * block.n_kv_heads * block.head_dim);
}

} // namespace

offload_flags planned(offload_flags flags, gpu::device& dev, const models::model_spec& spec,
                      const models::checkpoint& weights, const config::options& options) {
  const auto types = must(models::resolve_compute(options.model.compute, options.kv.type, spec,
                                                  weights, dev.info()))
                         .value();
  const auto packed = models::estimate_packed_weights(spec, weights);
  models::offload::plan_request request;
  request.model = models::offload::model_shape(spec, types.kv_type, packed);
  if (flags.compress_cache)
    request.model.kv_packed_bytes_per_value = packed_kv_bytes(spec, types.kv_type, options);
  const auto measured = must(models::offload::measure_machine(
                                 dev, spec, weights, types, request.model, options,
                                 flags.remeasure ? models::offload::measuring::anew
                                                 : models::offload::measuring::if_unknown))
                            .value();
  request.machine = measured.on;
  request.work.prompt_len = flags.prompt_len;
  request.work.gen_len = flags.gen_len;
  request.block_tokens = options.kv.block_tokens;
  request.ring_layers = options.offload.ring_layers;
  request.kv_buffers = options.offload.kv_buffers;
  request.outer_resident = false;
  request.host_attention = flags.cpu_cache_compute;
  // Activations are small, so they stay on the device unless the user sets their placement.
  request.hidden = models::offload::tier_split{};
  request.model.hidden_bytes_per_value = sizeof(float);
  if (flags.fixed_batch) request.batch_size = flags.gpu_batch_size;
  if (flags.fixed_batches) request.n_batches = flags.num_gpu_batches;
  if (flags.fixed_order) request.order = models::offload::search_order_named(flags.search_order);
  if (flags.fixed_percent) {
    request.weights =
        models::offload::tier_split{flags.percent[0] / 100.0, flags.percent[1] / 100.0};
    request.kv = models::offload::tier_split{flags.percent[2] / 100.0, flags.percent[3] / 100.0};
    request.hidden =
        models::offload::tier_split{flags.percent[4] / 100.0, flags.percent[5] / 100.0};
  }
  const auto found = must(models::offload::make_plan(request)).value();
  constexpr std::size_t most_spans = 200'000;
  const bool drawn = flags.plan_only && !flags.timeline.empty();
  const auto played = models::offload::simulate(request.model, request.machine, found.policy,
                                                request.work, drawn ? most_spans : 0);
  print(request, found, played, measured.remembered);
  if (drawn)
    draw_simulation(flags.timeline, flags.model + ", " + name_of(found.policy.order), played.spans);
  const auto percent = [](double share) { return static_cast<std::int32_t>(100 * share + 1e-6); };
  flags.gpu_batch_size = found.policy.batch_size;
  flags.num_gpu_batches = found.policy.n_batches;
  flags.search_order = name_of(found.policy.order);
  flags.stagger = found.policy.stagger;
  flags.percent = {percent(found.policy.weights.device), percent(found.policy.weights.host),
                   percent(found.policy.kv.device),      percent(found.policy.kv.host),
                   percent(found.policy.hidden.device),  percent(found.policy.hidden.host)};
  if (flags.percent[2] == 100) flags.compress_cache = false; // all KV is on the device
  return flags;
}

} // namespace twill::tools
