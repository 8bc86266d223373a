#include "actors/executor/decoder_sizing.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "actors/executor/device_sampler.hpp"
#include "actors/executor/memory_division.hpp"
#include "config/base/log.hpp"
#include "config/base/units.hpp"
#include "models/memory_estimate/memory_estimate.hpp"
#include "models/offload/plan/serving_plan.hpp"

namespace twill::actors {

namespace {

namespace offload = models::offload;

/// The context length in tokens. The user may ask for a longer context than the model is meant for,
/// but not beyond the model's table of learned positions, if it has one.
std::int32_t context_tokens(const model_on_device& load) {
  const models::model_spec& spec = load.model.spec;
  const std::int32_t asked = load.options.scheduler.max_context_tokens;
  if (asked <= 0) return spec.context_length;
  const std::int32_t context =
      spec.most_positions > 0 ? std::min(asked, spec.most_positions) : asked;
  if (context > spec.context_length)
    log::warn("`scheduler.max_context_tokens` is " + std::to_string(context) +
              ", but the model is meant for at most " + std::to_string(spec.context_length) +
              " tokens; expect worse text beyond that");
  return context;
}

/// An upper estimate: packed weights are a little larger than those in the file.
std::int64_t resident_weight_bytes(const models::model& model) {
  std::int64_t weights = 0;
  for (const auto& tensor : model.weights->tensors())
    weights += tensor.bytes;
  return weights + weights / 4;
}

models::decoder_options step_sizes(const model_on_device& load) {
  const auto& scheduler = load.options.scheduler;
  models::decoder_options sizes;
  sizes.compute = load.compute.compute;
  sizes.kv_type = load.compute.kv_type;
  sizes.block_tokens = load.options.kv.block_tokens;
  sizes.max_context_tokens = context_tokens(load);
  sizes.max_step_tokens =
      scheduler.max_step_tokens > 0 ? scheduler.max_step_tokens : offload::default_step_tokens;
  sizes.max_sequences = sizes.max_logit_rows =
      std::min(scheduler.max_running, sizes.max_step_tokens);
  sizes.carried_bytes = device_sampler::most_described_bytes(sizes.max_logit_rows);
  sizes.n_blocks = std::numeric_limits<std::int32_t>::max(); // the widest possible block tables
  return sizes;
}

models::kv_budget kv_input(const model_on_device& load, const models::decoder_options& sizes) {
  models::kv_budget in;
  in.asked_bytes = load.options.kv.memory_bytes;
  in.budget_bytes = load.options.device.memory_bytes;
  in.available_bytes = load.available_bytes;
  in.other_bytes = load.workspace_bytes(sizes) + resident_weight_bytes(load.model);
  in.block_bytes = models::decoder::block_bytes(load.model.spec, sizes);
  in.block_tokens = sizes.block_tokens;
  in.max_running = sizes.max_sequences;
  in.max_context_tokens = sizes.max_context_tokens;
  return in;
}

failure<errc> no_block_fits(const models::kv_budget& in) {
  const std::string got = in.asked_bytes > 0
                              ? format_bytes(in.asked_bytes)
                              : "what `device.memory` (" + format_bytes(in.budget_bytes) +
                                    ") leaves beside about " + format_bytes(in.other_bytes) +
                                    " of weights and workspace";
  return {errc::executor_failed, "`kv.memory` must hold at least one block of " +
                                     format_bytes(in.block_bytes) + ", got " + got};
}

/// Warns if the KV cache has room for fewer tokens than the context length, because a request then
/// ends where the cache is full.
void warn_of_short_context(const models::kv_budget& kv, std::int32_t n_blocks) {
  const std::int64_t tokens = std::int64_t{n_blocks} * kv.block_tokens;
  if (tokens >= kv.max_context_tokens) return;
  const std::int64_t blocks = (kv.max_context_tokens + kv.block_tokens - 1) / kv.block_tokens;
  log::warn("the KV cache holds " + std::to_string(tokens) +
            " tokens, so that a request's prompt and output together end there and not at the " +
            std::to_string(kv.max_context_tokens) +
            " that the model allows; one such request takes a `kv.memory` of " +
            format_bytes(blocks * kv.block_bytes));
}

} // namespace

result<decoder_size> size_decoder(const model_on_device& load) {
  decoder_size size;
  size.options = step_sizes(load);
  models::kv_budget kv = kv_input(load, size.options);
  if (auto divided = divide_memory(load, kv, size); !divided.ok()) return divided.error();
  size.options.n_blocks = models::estimate_kv_blocks(kv);
  if (size.options.n_blocks < 1) return no_block_fits(kv);
  warn_of_short_context(kv, size.options.n_blocks);
  return size;
}

memory_need estimate_need(const model_on_device& load) {
  const models::decoder_options sizes = step_sizes(load);
  models::kv_budget kv = kv_input(load, sizes);
  if (kv.asked_bytes <= 0) {
    const std::int64_t blocks = (kv.max_context_tokens + kv.block_tokens - 1) / kv.block_tokens;
    kv.asked_bytes = std::min(8 * blocks * kv.block_bytes, load.available_bytes / 4);
  }
  const std::int64_t blocks = std::max(models::estimate_kv_blocks(kv), 1);
  memory_need need;
  need.weights = models::estimate_packed_weights(load.model.spec, *load.model.weights).all();
  need.workspace = load.workspace_bytes(sizes);
  need.kv = blocks * kv.block_bytes;
  return need;
}

} // namespace twill::actors
