#include "models/offload/plan_for_serving.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "config/base/log.hpp"
#include "config/base/units.hpp"
#include "models/offload/model_shape.hpp"

namespace twill::models::offload {
namespace {

std::string one_place(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", number);
  return text;
}

std::string text_of(const serving_plan& p, const offload_workload& work, bool remembered) {
  return "plan: " + std::to_string(p.n_sequences) + " sequences of " +
         std::to_string(work.prompt_len) + " + " + std::to_string(work.gen_len) +
         " tokens at once, KV " + format_bytes(static_cast<std::int64_t>(p.kv_bytes)) +
         ", steps of " + std::to_string(p.step_tokens) + " tokens, " +
         std::to_string(p.mixed_prompt_tokens) + " of prompts beside decodes; projected " +
         std::to_string(std::lround(p.tokens_per_s)) + " output tokens/s, " +
         one_place(p.alone_tokens_per_s) + " of one sequence alone, bound by " + name_of(p.bound) +
         (remembered ? " (speeds measured by an earlier run)" : "");
}

} // namespace

result<planned_serving> plan_for_serving(gpu::device& dev, const model_spec& spec,
                                         const checkpoint& weights, const compute_choice& types,
                                         const config::options& options, const serving_room& room,
                                         measuring when) {
  serving_request r;
  r.model = model_shape(spec, types.kv_type, room.weights);
  r.model.layer_bytes = static_cast<double>(room.weights.layers) / std::max(spec.n_layers, 1);
  r.model.outer_bytes = static_cast<double>(room.weights.tables + room.weights.small);
  const auto measured = measure_machine(dev, spec, weights, types, r.model, options, when);
  if (!measured.ok()) return measured.error();
  r.machine = measured.value().on;
  r.machine.device_bytes = static_cast<double>(room.device_bytes);
  r.machine.host_bytes = static_cast<double>(room.host_bytes);
  r.work.prompt_len = options.offload.typical_prompt_tokens;
  r.work.gen_len = options.offload.typical_output_tokens;
  r.max_running = options.scheduler.max_running;
  r.ring_layers = options.offload.ring_layers;
  r.block_tokens = options.kv.block_tokens;
  r.small_bytes = static_cast<double>(room.weights.small);
  r.workspace_bytes = static_cast<double>(room.workspace_bytes);
  r.step_token_bytes = static_cast<double>(room.step_token_bytes);
  r.least_kv_bytes = static_cast<double>(room.least_kv_bytes);
  if (options.kv.memory_bytes > 0) r.kv_bytes = static_cast<double>(options.kv.memory_bytes);
  if (options.offload.host_percent >= 0) r.host_share = options.offload.host_percent / 100.0;
  if (options.scheduler.max_step_tokens > 0) r.step_tokens = options.scheduler.max_step_tokens;
  const auto plan = plan_serving(r);
  if (!plan)
    return failure{errc::out_of_memory, "no plan fits: one sequence of " +
                                            std::to_string(r.work.prompt_len + r.work.gen_len) +
                                            " tokens beside " + std::to_string(r.ring_layers) +
                                            " layers of weights needs more than " +
                                            format_bytes(room.device_bytes)};
  log::info(text_of(*plan, r.work, measured.value().remembered));
  return planned_serving{*plan, r.machine, measured.value().remembered};
}

} // namespace twill::models::offload
