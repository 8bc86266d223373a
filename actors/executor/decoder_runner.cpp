#include "actors/executor/decoder_runner.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "actors/detail/executor_failure.hpp"
#include "actors/executor/decoder_sizing.hpp"
#include "actors/executor/device_sampler.hpp"
#include "actors/executor/kv_fingerprint.hpp"
#include "actors/executor/step_ends.hpp"
#include "actors/executor/stream_watch.hpp"
#include "actors/executor/warm_up.hpp"
#include "config/base/log.hpp"
#include "config/base/units.hpp"
#include "gpu/device.hpp"
#include "gpu/memory_meter.hpp"
#include "models/checkpoint/mapping_guard.hpp"
#include "models/compute.hpp"
#include "models/decoder/decoder.hpp"
#include "models/model.hpp"
#include "models/offload/streams/tier_resources.hpp"

namespace twill::actors {

namespace {

using shared_model = std::shared_ptr<const models::model>;

class decoder_runner final : public step_runner {
public:
  decoder_runner(const config::options& options, std::shared_ptr<shared_model> kept,
                 load_progress progress, models::offload::store_opener open_store, run_order order)
      : options_(options), kept_(std::move(kept)), progress_(std::move(progress)),
        open_store_(std::move(open_store)), order_(order) {}
  ~decoder_runner() override {
    if (!ends_) return;
    try {
      device_->fence(); // a step under way uses the objects that are destroyed now
    } catch (const gpu::device_lost_error&) {
      return; // a lost device has nothing to wait for
    }
  }

  void use_tiers(std::shared_ptr<models::offload::tier_resources> resources) override {
    tiers_ = std::move(resources);
  }
  result<runner_info> load() override {
    faults_ = models::mapping_guard::faults();
    auto info = load_unguarded();
    if (models::mapping_guard::faults() == faults_) return info;
    kept_->reset(); // so that the next load opens the files anew
    return failure{errc::executor_failed, options_.model.path + ": " + models::mapping_fault_words};
  }

  result<nothing> run(const executor_step& batch, step_samples& out) override {
    watch_.step_begins();
    auto ran = run_unguarded(batch, out);
    watch_.step_ends();
    if (models::mapping_guard::faults() == faults_) return ran;
    kept_->reset();
    return failure{errc::executor_failed, options_.model.path + ": " + models::mapping_fault_words};
  }

  result<nothing> begin(const executor_step& batch, std::function<void()> done) override {
    if (auto launched = launch(batch); !launched.ok()) return launched;
    drew_.push_back(!batch.draws.empty());
    ends_->add(std::move(done));
    return nothing{};
  }

  result<nothing> end(step_samples& out) override {
    if (auto ended = ends_->wait(); !ended.ok()) return executor_failure(ended.error());
    if (drew_.front()) sampler_->collect(out);
    drew_.pop_front();
    if (models::mapping_guard::faults() == faults_) return nothing{};
    kept_->reset();
    return failure{errc::executor_failed, options_.model.path + ": " + models::mapping_fault_words};
  }

  std::int64_t memory_used_bytes() const override { return device_->memory_used(); }
  bool device_is_lost() override {
    return device_ ? device_->is_lost() : gpu::device::chip_is_lost();
  }
  std::shared_ptr<const stream_report> take_stream_report() override { return watch_.take(); }

  result<nothing> save_block(std::int32_t block, void* to) override {
    decoder_->save_block(block, to);
    return nothing{};
  }
  result<nothing> load_block(std::int32_t block, const void* from) override {
    decoder_->load_block(block, from);
    return nothing{};
  }

private:
  result<runner_info> load_unguarded() {
    if (!*kept_) {
      auto opened = models::open_model(options_.model.path, options_.model.chat_template);
      if (!opened.ok()) return executor_failure(opened.error());
      *kept_ = std::move(opened).value();
    }
    models::model model = **kept_;
    auto device = gpu::device::open({options_.device.kind, options_.device.threads,
                                     options_.device.memory_bytes, options_.device.id});
    if (!device.ok()) return executor_failure(device.error());
    device_ = std::move(device).value();
    auto choice = models::resolve_compute(options_.model.compute, options_.kv.type, model.spec,
                                          *model.weights, device_->info());
    if (!choice.ok()) return executor_failure(choice.error());
    model.weights =
        models::weights_for(choice.value().compute, model.spec, model.weights, device_->info());
    auto size = size_decoder({options_, *device_, model, choice.value(), usable_bytes(*device_),
                              tiers_ ? tiers_->host().taken() : 0});
    if (!size.ok()) return size.error();
    models::decoder_options& o = size.value().options;
    o.offload.open_store = open_store_;
    o.offload.resources = tiers_;
    auto decoder =
        models::decoder::load(*device_, model.spec, *model.weights, o, packed_share(model));
    if (!decoder.ok()) return executor_failure(decoder.error());
    decoder_ = std::move(decoder).value();
    watch_.watch(*decoder_);
    auto sampler = device_sampler::create(*device_, o.max_logit_rows, options_.limits.max_logprobs,
                                          model.spec.vocab_size);
    if (!sampler.ok()) return executor_failure(sampler.error());
    sampler_.emplace(std::move(sampler).value());
    // To run ahead is to launch a step while the one before it computes. On a host (CPU) the launch
    // itself computes the step, so running ahead would only waste work on sequences that turn out
    // to have ended. With streamed weights, a step waits for weights and not for its plan.
    const bool ahead =
        order_ == run_order::by_device ? !device_->memory_is_host() : order_ == run_order::ahead;
    if (ahead && decoder_->stream() == nullptr) ends_.emplace(*device_);
    if (!device_->memory_is_host())
      if (auto warm = warm_up(o); !warm.ok()) return warm.error();
    const auto info = describe(model, size.value());
    log::info("the decoder computes in " + std::string(gpu::name_of(o.compute)) +
              " and keeps KV in " + gpu::name_of(o.kv_type) + "; " + memory_text(info));
    return info;
  }

  /// Runs steps of the kinds that requests need: one token, short prompts, the longest step, and
  /// many sequences, each with greedy draws and with draws that report log-probabilities. The
  /// memory that a GPU's libraries take at a kernel's first launch is then taken, and measured,
  /// before requests come. A model that streams its weights skips this, since each step would
  /// stream all weights.
  result<nothing> warm_up(const models::decoder_options& sizes) {
    if (decoder_->stream() != nullptr) return nothing{};
    config::sampling_params greedy, drawn;
    greedy.temperature = 0;
    drawn.top_k = 40;
    drawn.top_p = 0.9F;
    drawn.logprobs = std::min(options_.limits.max_logprobs, 1);
    const auto longest = static_cast<std::int32_t>(
        std::min<std::int64_t>({sizes.max_step_tokens, sizes.max_context_tokens,
                                std::int64_t{sizes.n_blocks} * sizes.block_tokens}));
    const std::int32_t together = std::min(sizes.max_logit_rows, sizes.n_blocks);
    const std::pair<std::int32_t, std::int32_t> steps[] = {
        {1, 1}, {1, std::min(12, longest)}, {1, longest}, {together, 1}};
    step_samples samples;
    for (const auto& [sequences, rows] : steps)
      for (const auto* params : {&greedy, &drawn})
        if (auto ran =
                run_unguarded(warm_up_step(sequences, rows, sizes.block_tokens, *params), samples);
            !ran.ok())
          return ran;
    const std::int64_t outside = device_->outside_bytes();
    const std::int64_t spare = device_->info().spare_bytes;
    if (spare > 0 && outside > spare)
      log::warn("CUDA and libraries took " + format_bytes(outside) + " of the GPU, where " +
                format_bytes(spare) + " are left for them: set `device.memory` to at most " +
                format_bytes(device_->info().memory_bytes - (outside - spare)) +
                " if memory runs out");
    return nothing{};
  }

  /// A text for clients about how much memory is reserved and how much of it was touched.
  static std::string memory_text(const runner_info& info) {
    const std::int64_t reserved = info.memory_used_bytes;
    const std::int64_t kv = info.kv_block_bytes * info.n_blocks;
    const std::int64_t untouched = info.untouched_bytes ? info.untouched_bytes() : 0;
    return format_bytes(reserved) + " of device memory are reserved (weights " +
           format_bytes(info.weight_bytes) + ", KV " + format_bytes(kv) + ", steps " +
           format_bytes(reserved - info.weight_bytes - kv) + ") and " +
           format_bytes(reserved - untouched) + " of them touched" +
           (info.outside_bytes > 0
                ? ", beside " + format_bytes(info.outside_bytes) + " that CUDA and libraries took"
                : "");
  }

  /// Launches a step's forward pass.
  result<gpu::tensor_ref> pass(const executor_step& batch) {
    models::step_payload payload;
    payload.bytes = sampler_->describe(batch.draws, decoder_->payload_of(batch));
    if (!batch.fed_from.empty()) payload.drawn = sampler_->drawn();
    const auto passed = decoder_->forward(batch, payload);
    if (!passed.ok()) return executor_failure(passed.error());
    return passed.value();
  }

  /// Launches a step with its draws.
  result<nothing> launch(const executor_step& batch) {
    const auto passed = pass(batch);
    if (!passed.ok()) return passed.error();
    if (batch.await_masks) batch.await_masks();
    const auto n_draws = static_cast<std::int64_t>(batch.draws.size());
    if (n_draws == 0) return nothing{};
    if (auto drawn = sampler_->launch(*device_, rows_of(passed.value(), 0, n_draws), batch.draws);
        !drawn.ok())
      return executor_failure(drawn.error());
    return nothing{};
  }

  result<nothing> run_unguarded(const executor_step& batch, step_samples& out) {
    const auto passed = pass(batch);
    if (!passed.ok()) return passed.error();
    const gpu::tensor_ref logits = passed.value();
    if (batch.n_hidden > 0) fetch_hidden(decoder_->hidden(), out);
    if (batch.draws.empty() && batch.scores.empty()) {
      device_->fence(); // so that the step's time and failures are attributed to the step itself
      return nothing{};
    }
    if (batch.await_masks) batch.await_masks();
    const auto n_draws = static_cast<std::int64_t>(batch.draws.size());
    if (n_draws > 0)
      if (auto drawn = sampler_->draw(*device_, rows_of(logits, 0, n_draws), batch.draws, out);
          !drawn.ok())
        return executor_failure(drawn.error());
    if (!batch.scores.empty()) {
      const auto n = static_cast<std::int64_t>(batch.scores.size());
      if (auto scored = sampler_->score(*device_, rows_of(logits, n_draws, n), batch.scores, out);
          !scored.ok())
        return executor_failure(scored.error());
    }
    return nothing{};
  }

  void fetch_hidden(const gpu::tensor_ref& hidden, step_samples& out) {
    out.hidden_size = static_cast<std::int32_t>(hidden.row_size());
    out.hidden.resize(static_cast<std::size_t>(hidden.rows() * hidden.row_size()));
    device_->download(out.hidden.data(), hidden.data, out.hidden.size() * sizeof(float));
  }

  static gpu::tensor_ref rows_of(const gpu::tensor_ref& logits, std::int64_t first,
                                 std::int64_t n) {
    return gpu::view_2d(logits.as<float>() + first * logits.row_stride, gpu::dtype::f32, n,
                        logits.shape[1], logits.row_stride);
  }

  /// Converts the packed share of weights, which the decoder reports, into bytes for load_progress.
  std::function<void(double)> packed_share(const models::model& model) const {
    if (progress_ == nullptr) return nullptr;
    std::int64_t total = 0;
    for (const auto& tensor : model.weights->tensors())
      total += tensor.bytes;
    return [total, &tell = progress_](double share) {
      tell(static_cast<std::int64_t>(share * static_cast<double>(total)), total);
    };
  }

  runner_info describe(const models::model& model, const decoder_size& size) const {
    const auto& d = device_->info();
    runner_info info;
    info.model = *kept_;
    info.device = d.kind + " (" + d.name + ", " + d.backend + ", " + d.isa + ", " +
                  std::to_string(d.threads) + " threads)";
    info.n_blocks = size.options.n_blocks;
    info.block_tokens = size.options.block_tokens;
    info.max_context_tokens = size.options.max_context_tokens;
    info.max_step_tokens = size.options.max_step_tokens;
    info.mixed_prompt_tokens = size.mixed_prompt_tokens;
    info.max_logit_rows = size.options.max_logit_rows;
    info.memory_used_bytes = device_->memory_used();
    info.weight_bytes = decoder_->weight_bytes();
    info.memory_is_host = device_->memory_is_host();
    info.outside_bytes = device_->outside_bytes();
    if (auto meter = gpu::meter_of(*device_))
      info.untouched_bytes = [meter = std::move(meter)] { return meter->untouched_bytes(); };
    info.streamed = watch_.placement();
    info.shareable_length = model.spec.shareable_length();
    info.kv_block_bytes = models::decoder::block_bytes(model.spec, size.options);
    info.runs_ahead = ends_.has_value();
    info.fingerprint = kv_fingerprint(model, size.options, device_->info());
    return info;
  }

  const config::options& options_;
  std::shared_ptr<shared_model> kept_;
  load_progress progress_;
  models::offload::store_opener open_store_;
  std::shared_ptr<models::offload::tier_resources> tiers_; ///< null: the decoder creates its own
  run_order order_;
  std::uint64_t faults_ = 0; ///< faults of mapped files before the load began
  // Declared before, and so destroyed after, all objects in its memory.
  std::unique_ptr<gpu::device> device_;
  stream_watch watch_;
  std::unique_ptr<models::decoder> decoder_;
  std::optional<device_sampler> sampler_;
  std::deque<bool> drew_;         ///< whether the steps under way draw, oldest first
  std::optional<step_ends> ends_; ///< set if steps run ahead
};

} // namespace

runner_factory make_decoder_runners(const config::options& options, load_progress progress,
                                    models::offload::store_opener open_store, kept_model kept,
                                    run_order order) {
  if (!kept) kept = std::make_shared<shared_model>();
  return [options = std::make_shared<const config::options>(options), kept = std::move(kept),
          progress = std::move(progress), open_store = std::move(open_store),
          order]() -> std::unique_ptr<step_runner> {
    return std::make_unique<decoder_runner>(*options, kept, progress, open_store, order);
  };
}

} // namespace twill::actors
