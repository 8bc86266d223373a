#include "actors/executor/memory_division.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "actors/detail/executor_failure.hpp"
#include "config/base/log.hpp"
#include "config/base/units.hpp"
#include "gpu/machine.hpp"
#include "models/offload/choose_placement.hpp"
#include "models/offload/plan_for_serving.hpp"

namespace twill::actors {

namespace {

namespace offload = models::offload;

/// Bytes of host memory for streamed weights. If the device is the host, the device's memory is
/// taken from the same free memory.
std::int64_t host_tier_bytes(const model_on_device& load) {
  const std::int64_t free = gpu::machine::available_bytes() - load.promised_host_bytes;
  const std::int64_t asked = load.options.offload.host_memory_bytes;
  std::int64_t bytes = asked > 0 ? asked : free * 3 / 4;
  if (load.device.memory_is_host()) bytes = std::min(bytes, free - load.available_bytes);
  return std::max<std::int64_t>(bytes, 0);
}

offload::placement_room room_of(const model_on_device& load) {
  offload::placement_room room;
  room.weights = models::estimate_packed_weights(load.model.spec, *load.model.weights);
  room.n_layers = load.model.spec.n_layers;
  room.sep_layer = load.options.offload.sep_layer;
  room.host_bytes = host_tier_bytes(load);
  return room;
}

/// Bytes of the KV cache if no serving plan (models/offload/plan_for_serving.hpp) decides: what the
/// user asked for; otherwise enough for one sequence of full context length, but at most a quarter
/// of the device memory, and less if the buffers of streamed weights leave less.
std::int64_t unplanned_kv_bytes(const model_on_device& load, const models::kv_budget& kv,
                                const models::decoder_options& sizes,
                                const offload::placement_room& room) {
  if (kv.asked_bytes > 0) return kv.asked_bytes;
  const std::int64_t blocks = (kv.max_context_tokens + kv.block_tokens - 1) / kv.block_tokens;
  const std::int64_t wanted = std::min(blocks * kv.block_bytes, kv.available_bytes / 4);
  const std::int64_t beside_ring =
      kv.available_bytes - load.workspace_bytes(sizes) -
      offload::least_device_bytes(room, load.options.offload.ring_layers);
  return std::clamp(beside_ring, std::min(wanted, 8 * kv.block_bytes), wanted);
}

/// Makes a serving plan for a model whose weights do not fit the device. Returns the bytes of KV
/// for the sequences that the plan runs at once, at least `least_kv_bytes`, and sets the length of
/// steps. If no plan can be made, returns `least_kv_bytes`.
std::int64_t planned_kv_bytes(const model_on_device& load, std::int64_t least_kv_bytes,
                              const offload::placement_room& room, decoder_size& size) {
  models::decoder_options& sizes = size.options;
  models::decoder_options longer = sizes;
  longer.max_step_tokens = 2 * sizes.max_step_tokens;
  // A step takes memory in proportion to its tokens.
  const std::int64_t work = load.workspace_bytes(sizes) + 4 * mib;
  const std::int64_t more = load.workspace_bytes(longer) - load.workspace_bytes(sizes);
  offload::serving_room all;
  all.weights = room.weights;
  all.device_bytes = load.available_bytes;
  all.host_bytes = room.host_bytes;
  all.workspace_bytes = work - more;
  all.step_token_bytes = more / sizes.max_step_tokens;
  all.least_kv_bytes = least_kv_bytes;
  const auto plan = offload::plan_for_serving(load.device, load.model.spec, *load.model.weights,
                                              load.compute, load.options, all, load.measure);
  if (!plan.ok()) {
    log::warn("weights are streamed without a plan: " + plan.detail());
    return least_kv_bytes;
  }
  sizes.max_step_tokens = plan.value().step_tokens;
  size.mixed_prompt_tokens = plan.value().mixed_prompt_tokens;
  size.plan = plan.value();
  return static_cast<std::int64_t>(plan.value().kv_bytes);
}

/// Fails if the `kv.memory` that the user asks for leaves no room for weights, not even for
/// streamed ones. For a device that would be too small with any `kv.memory`, the error comes from
/// choose_placement().
result<nothing> check_kv_wish(const model_on_device& load, const models::kv_budget& kv,
                              const models::decoder_options& sizes,
                              const offload::placement_room& room) {
  const std::int64_t beside_kv =
      load.workspace_bytes(sizes) +
      std::min(room.weights.all(),
               offload::least_device_bytes(room, load.options.offload.ring_layers));
  const std::int64_t most = kv.available_bytes - beside_kv;
  if (kv.asked_bytes <= most || most < kv.block_bytes) return nothing{};
  const std::int64_t budget = load.options.device.memory_bytes;
  const std::string of = budget > 0 && budget <= kv.available_bytes
                             ? "`device.memory` (" + format_bytes(budget) + ")"
                             : format_bytes(kv.available_bytes) + " of free memory";
  return failure{errc::executor_failed,
                 "`kv.memory` must be at most " + format_bytes(most) + ", which " + of +
                     " leaves beside weights and workspace, got " + format_bytes(kv.asked_bytes)};
}

} // namespace

result<nothing> divide_memory(const model_on_device& load, models::kv_budget& kv,
                              decoder_size& size) {
  offload::placement_room room = room_of(load);
  if (auto possible = check_kv_wish(load, kv, size.options, room); !possible.ok()) return possible;
  std::int64_t kv_bytes = unplanned_kv_bytes(load, kv, size.options, room);
  const bool fits =
      room.weights.all() <= kv.available_bytes - load.workspace_bytes(size.options) - kv_bytes;
  if (!fits && load.options.offload.device_percent < 0)
    kv_bytes = kv.asked_bytes = planned_kv_bytes(load, kv_bytes, room, size);
  const std::int64_t workspace = load.workspace_bytes(size.options);
  room.device_bytes = kv.available_bytes - workspace - kv_bytes;
  auto chosen = offload::choose_placement(load.options, room);
  if (!chosen.ok()) return executor_failure(chosen.error());
  size.options.offload = std::move(chosen).value();
  const auto& placed = size.options.offload;
  if (!placed.streams_weights()) {
    // If all weights fit beside `kv_bytes` (one context of KV if `kv.memory` is not given), the KV
    // cache may be larger than that, but takes only what weights and workspace leave.
    if (fits) {
      kv.other_bytes = workspace + room.weights.all();
      kv.budget_bytes = kv.available_bytes;
    }
    return nothing{};
  }
  kv.other_bytes = workspace + offload::least_device_bytes(room, placed.ring_layers) +
                   room.weights.matrices() * placed.weights.device / 100;
  kv.budget_bytes = kv.available_bytes;
  log::info("streaming " + offload::describe(placed, room));
  return nothing{};
}

} // namespace twill::actors
