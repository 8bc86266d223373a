#include "actors/executor/decoder_runner.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "actors/detail/executor_failure.hpp"
#include "actors/executor/device_sampler.hpp"
#include "config/base/log.hpp"
#include "config/base/units.hpp"
#include "gpu/device.hpp"
#include "gpu/machine.hpp"
#include "models/compute.hpp"
#include "models/decoder/decoder.hpp"
#include "models/memory_estimate/memory_estimate.hpp"
#include "models/model.hpp"
#include "models/offload/choose_placement.hpp"
#include "models/offload/plan_for_serving.hpp"

namespace twill::actors {

namespace {

namespace offload = models::offload;

using shared_model = std::shared_ptr<const models::model>;

/// A little for sampling and everything small.
std::int64_t small_bytes(std::int64_t available) {
  return std::clamp<std::int64_t>(available / 32, 8 * mib, 64 * mib);
}

/// Weights as packed are a little larger than in the file.
std::int64_t resident_bytes(const models::model& m) {
  std::int64_t weights = 0;
  for (const auto& tensor : m.weights->tensors())
    weights += tensor.bytes;
  return weights + weights / 4;
}

class decoder_runner final : public step_runner {
public:
  decoder_runner(const config::options& options, std::shared_ptr<shared_model> kept,
                 load_progress progress, store_opener open_store)
      : options_(options), kept_(std::move(kept)), progress_(std::move(progress)),
        open_store_(std::move(open_store)) {}

  result<runner_info> load() override {
    if (!*kept_) {
      auto opened = models::open_model(options_.model.path, options_.model.chat_template);
      if (!opened.ok()) return executor_failure(opened.error());
      *kept_ = std::move(opened).value();
    }
    models::model model = **kept_;
    auto device = gpu::device::open(
        {options_.device.kind, options_.device.threads, options_.device.memory_bytes});
    if (!device.ok()) return executor_failure(device.error());
    device_ = std::move(device).value();
    auto choice = models::resolve_compute(options_.model.compute, options_.kv.type, *model.weights,
                                          device_->info());
    if (!choice.ok()) return executor_failure(choice.error());
    model.weights = models::weights_for(choice.value().compute, model.spec, model.weights);
    runner_info info = describe(model);
    const auto o = decoder_options(model, choice.value(), info);
    if (!o.ok()) return o.error();
    auto decoder =
        models::decoder::load(*device_, model.spec, *model.weights, o.value(), packed_share(model));
    if (!decoder.ok()) return executor_failure(decoder.error());
    decoder_ = std::move(decoder).value();
    auto sampler =
        device_sampler::create(*device_, o.value().max_logit_rows, options_.limits.max_logprobs);
    if (!sampler.ok()) return executor_failure(sampler.error());
    sampler_.emplace(std::move(sampler).value());
    info.n_blocks = o.value().n_blocks;
    info.max_step_tokens = o.value().max_step_tokens;
    info.memory_used_bytes = device_->memory_used();
    log::info("compute " + std::string(gpu::name_of(o.value().compute)) + ", KV " +
              gpu::name_of(o.value().kv_type) + ", device memory " +
              format_bytes(device_->memory_used()));
    return info;
  }

  result<nothing> run(const executor_step& batch, step_samples& out) override {
    const auto passed = decoder_->forward(batch);
    if (!passed.ok()) return executor_failure(passed.error());
    const gpu::tensor_ref logits = passed.value();
    if (batch.draws.empty()) {
      device_->fence(); // a step's end is its end: time and failures belong to it
      return nothing{};
    }
    if (auto drawn = sampler_->draw(*device_, logits, batch.draws, out); !drawn.ok())
      return executor_failure(drawn.error());
    return nothing{};
  }

  std::int64_t memory_used_bytes() const override { return device_->memory_used(); }

private:
  /// The decoder tells shares, users want bytes.
  std::function<void(double)> packed_share(const models::model& model) const {
    if (progress_ == nullptr) return nullptr;
    std::int64_t total = 0;
    for (const auto& tensor : model.weights->tensors())
      total += tensor.bytes;
    return [total, &tell = progress_](double share) {
      tell(static_cast<std::int64_t>(share * static_cast<double>(total)), total);
    };
  }

  runner_info describe(const models::model& model) const {
    const auto& d = device_->info();
    runner_info info;
    info.model = *kept_;
    info.device = d.kind + " (" + d.name + ", " + d.backend + ", " + d.isa + ", " +
                  std::to_string(d.threads) + " threads)";
    info.block_tokens = options_.kv.block_tokens;
    info.max_context_tokens = context_of(model.spec);
    info.shareable_length = model.spec.shareable_length();
    return info;
  }

  /// Steps as they were asked for, and what is small.
  std::int64_t work_bytes(const models::model& model, const models::decoder_options& o,
                          std::int64_t available) const {
    return models::estimate_step_bytes(model.spec, o) +
           models::estimate_scratch_bytes(*device_, model.spec, *model.weights, o) +
           small_bytes(available);
  }

  /// Asked for, a context may be longer than what the model is meant for, up to its position table.
  std::int32_t context_of(const models::model_spec& spec) const {
    const std::int32_t asked = options_.scheduler.max_context_tokens;
    if (asked <= 0) return spec.context_length;
    const std::int32_t context =
        spec.most_positions > 0 ? std::min(asked, spec.most_positions) : asked;
    if (context > spec.context_length)
      log::warn("`scheduler.max_context_tokens` is beyond the " +
                std::to_string(spec.context_length) + " tokens that the model is meant for, got " +
                std::to_string(context));
    return context;
  }

  result<models::decoder_options> decoder_options(const models::model& model,
                                                  const models::compute_choice& choice,
                                                  runner_info& info) const {
    models::decoder_options o;
    o.compute = choice.compute;
    o.kv_type = choice.kv_type;
    o.block_tokens = info.block_tokens;
    o.max_context_tokens = info.max_context_tokens;
    o.max_step_tokens = options_.scheduler.max_step_tokens > 0 ? options_.scheduler.max_step_tokens
                                                               : offload::default_step_tokens;
    o.max_sequences = o.max_logit_rows =
        std::min(options_.scheduler.max_running, o.max_step_tokens);
    o.n_blocks = std::numeric_limits<std::int32_t>::max(); // block tables as wide as they may get
    models::kv_budget in;
    in.asked_bytes = options_.kv.memory_bytes;
    in.budget_bytes = options_.device.memory_bytes;
    const std::int64_t budget = device_->info().memory_bytes;
    const std::int64_t host = device_->info().kind == "host" ? gpu::machine::available_bytes() : 0;
    in.available_bytes = host > 0 ? std::min(host, budget) : budget;
    in.other_bytes = work_bytes(model, o, in.available_bytes) + resident_bytes(model);
    in.block_bytes = models::decoder::block_bytes(model.spec, o);
    in.block_tokens = o.block_tokens;
    in.max_running = o.max_sequences;
    in.max_context_tokens = info.max_context_tokens;
    if (auto chosen = place_weights(model, choice, in, o, info); !chosen.ok())
      return chosen.error();
    o.n_blocks = models::estimate_kv_blocks(in);
    if (o.n_blocks < 1)
      return failure{
          errc::executor_failed,
          "`kv.memory` must hold at least one block of " + format_bytes(in.block_bytes) + ", got " +
              (in.asked_bytes > 0 ? format_bytes(in.asked_bytes)
                                  : "what `device.memory` (" + format_bytes(in.budget_bytes) +
                                        ") leaves beside about " + format_bytes(in.other_bytes) +
                                        " of weights and workspace")};
    return o;
  }

  /// Decides where weights live; where they are streamed, `in` then counts what they take.
  result<nothing> place_weights(const models::model& model, const models::compute_choice& choice,
                                models::kv_budget& in, models::decoder_options& o,
                                runner_info& info) const {
    offload::placement_room room;
    room.weights = models::estimate_packed_weights(model.spec, *model.weights);
    room.n_layers = model.spec.n_layers;
    room.sep_layer = options_.offload.sep_layer;
    room.host_bytes = host_tier_bytes(in.available_bytes);
    // KV gets what was asked; else one context, a quarter at most, and less where weights on their
    // way leave less; where a plan is made, as much as it says, and never less than that.
    const std::int64_t blocks = (in.max_context_tokens + in.block_tokens - 1) / in.block_tokens;
    const std::int64_t wanted = std::min(blocks * in.block_bytes, in.available_bytes / 4);
    const auto work = [&] { return work_bytes(model, o, in.available_bytes); };
    const std::int64_t beside_ring =
        in.available_bytes - work() -
        offload::least_device_bytes(room, options_.offload.ring_layers);
    std::int64_t kv = in.asked_bytes > 0
                          ? in.asked_bytes
                          : std::clamp(beside_ring, std::min(wanted, 8 * in.block_bytes), wanted);
    if (options_.offload.device_percent < 0 &&
        room.weights.all() > in.available_bytes - work() - kv)
      kv = in.asked_bytes = planned(model, choice, in, kv, room, o, info);
    room.device_bytes = in.available_bytes - work() - kv;
    auto chosen = offload::choose_placement(options_, room);
    if (!chosen.ok()) return executor_failure(chosen.error());
    o.offload = std::move(chosen).value();
    o.offload.open_store = open_store_;
    if (!o.offload.streams_weights()) return nothing{};
    in.other_bytes = work() + offload::least_device_bytes(room, o.offload.ring_layers) +
                     room.weights.matrices() * o.offload.weights.device / 100;
    in.budget_bytes = in.available_bytes;
    log::info("streaming " + offload::describe(o.offload, room));
    return nothing{};
  }

  /// The host's device is its memory too: what the arena takes is not there for the tier.
  std::int64_t host_tier_bytes(std::int64_t arena_bytes) const {
    const std::int64_t free = gpu::machine::available_bytes();
    std::int64_t bytes =
        options_.offload.host_memory_bytes > 0 ? options_.offload.host_memory_bytes : free * 3 / 4;
    if (device_->info().kind == "host") bytes = std::min(bytes, free - arena_bytes);
    return std::max<std::int64_t>(bytes, 0);
  }

  /// Bytes of KV for the sequences that the plan has at once, and how long its steps are; without a
  /// plan as it was.
  std::int64_t planned(const models::model& model, const models::compute_choice& choice,
                       const models::kv_budget& in, std::int64_t kv,
                       const offload::placement_room& room, models::decoder_options& o,
                       runner_info& info) const {
    offload::serving_room all;
    all.weights = room.weights;
    all.device_bytes = in.available_bytes;
    all.host_bytes = room.host_bytes;
    models::decoder_options longer = o;
    longer.max_step_tokens = 2 * o.max_step_tokens;
    const std::int64_t work = work_bytes(model, o, in.available_bytes) + 4 * mib;
    const std::int64_t more = work_bytes(model, longer, 0) - work_bytes(model, o, 0);
    all.workspace_bytes = work - more; // steps take memory in proportion
    all.step_token_bytes = more / o.max_step_tokens;
    all.least_kv_bytes = kv;
    const auto plan =
        offload::plan_for_serving(*device_, model.spec, *model.weights, choice, options_, all);
    if (!plan.ok()) {
      log::warn("without a plan: " + plan.detail());
      return kv;
    }
    o.max_step_tokens = plan.value().step_tokens;
    info.mixed_prompt_tokens = plan.value().mixed_prompt_tokens;
    return static_cast<std::int64_t>(plan.value().kv_bytes);
  }

  const config::options& options_;
  std::shared_ptr<shared_model> kept_;
  load_progress progress_;
  store_opener open_store_;
  std::unique_ptr<gpu::device> device_; // before all that lives in its memory
  std::unique_ptr<models::decoder> decoder_;
  std::optional<device_sampler> sampler_;
};

} // namespace

runner_factory make_decoder_runners(const config::options& options, load_progress progress,
                                    store_opener open_store) {
  return [options = std::make_shared<const config::options>(options),
          kept = std::make_shared<shared_model>(), progress = std::move(progress),
          open_store = std::move(open_store)]() -> std::unique_ptr<step_runner> {
    return std::make_unique<decoder_runner>(*options, kept, progress, open_store);
  };
}

} // namespace twill::actors
