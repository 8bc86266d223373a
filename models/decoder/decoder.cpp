#include "models/decoder/decoder.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "models/checkpoint/mapping_guard.hpp"
#include "models/decoder/decoder_impl.hpp"
#include "models/decoder/gpu_error.hpp"
#include "models/memory_estimate/memory_estimate.hpp"

namespace twill::models {

micro_batch::micro_batch() = default;
micro_batch::~micro_batch() = default;

decoder::decoder() = default;
decoder::~decoder() = default;

result<std::unique_ptr<decoder>> decoder::load(gpu::device& dev, const model_spec& spec,
                                               const checkpoint& weights,
                                               const decoder_options& options,
                                               const std::function<void(double)>& progress) {
  if (auto valid = validate(spec); !valid.ok()) return valid.error();
  TWILL_ASSERT(options.block_tokens > 0 && options.n_blocks > 0 && options.max_step_tokens > 0 &&
                   options.max_sequences > 0 && options.max_logit_rows > 0,
               "decoder_options must be above 0");
  std::unique_ptr<decoder> loaded(new decoder);
  loaded->impl_ = std::make_unique<impl>();
  loaded->impl_->dev = &dev;
  loaded->impl_->spec = spec;
  loaded->impl_->options = options;
  const auto faults = mapping_guard::faults();
  auto done = loaded->impl_->load(weights, progress);
  // A mapped file that shrinks or fails reads as zeros, so the packed weights may be wrong even if
  // packing reported no failure.
  if (mapping_guard::faults() != faults) return failure{errc::file_unreadable, mapping_fault_words};
  if (!done.ok()) return done.error();
  return loaded;
}

step_limits decoder::impl::limits_for(std::int32_t tokens, std::int32_t sequences) const {
  step_limits limits;
  limits.position_offset = spec.position_offset;
  limits.most_positions = spec.most_positions;
  limits.tokens = tokens;
  limits.sequences = sequences;
  limits.logit_rows = options.max_logit_rows;
  limits.n_blocks = options.n_blocks;
  limits.block_tokens = options.block_tokens;
  limits.vocab_size = spec.vocab_size;
  limits.staged = !options.kv_staged.empty();
  limits.max_blocks = decoder::block_table_width(spec, options);
  return limits;
}

result<nothing> decoder::impl::load(const checkpoint& source,
                                    const std::function<void(double)>& progress) {
  // Memory whose size is known is allocated first, so that a lack of memory is found before the
  // packing, which takes long.
  auto made_work = workspace::create(*dev, spec, options.compute, options.max_step_tokens,
                                     options.max_logit_rows);
  if (!made_work.ok()) return made_work.error();
  work = std::move(made_work).value();

  auto made_kv = kv_arena::create(*dev, spec, options);
  if (!made_kv.ok()) return made_kv.error();
  kv = std::move(made_kv).value();

  step_limits limits = limits_for(options.max_step_tokens, options.max_sequences);
  limits.carried_bytes = options.carried_bytes;
  auto made_own = activations::create(*dev, spec, limits);
  if (!made_own.ok()) return made_own.error();
  own = std::move(made_own).value();

  const std::int64_t scratch = estimate_scratch_bytes(*dev, spec, source, options);
  if (auto reserved = from_gpu(dev->reserve_scratch(static_cast<std::size_t>(scratch)));
      !reserved.ok())
    return reserved.error();

  auto packed = load_weights(*dev, spec, source, options.compute,
                             options.offload.streams_weights() ? &options.offload : nullptr,
                             options.max_step_tokens, progress);
  if (!packed.ok()) return packed.error();
  weights = std::move(packed).value();
  dev->settle();
  return nothing{};
}

const model_spec& decoder::spec() const {
  return impl_->spec;
}

std::int64_t decoder::block_bytes(const model_spec& spec, const decoder_options& options) {
  return kv_arena::block_bytes(spec, options);
}

void decoder::save_block(std::int32_t block, void* to) const {
  const std::int64_t bytes = block_bytes(impl_->spec, impl_->options);
  impl_->dev->download(to,
                       static_cast<const unsigned char*>(impl_->kv.memory.data()) + block * bytes,
                       static_cast<std::size_t>(bytes));
}

void decoder::load_block(std::int32_t block, const void* from) {
  const std::int64_t bytes = block_bytes(impl_->spec, impl_->options);
  impl_->dev->upload(static_cast<unsigned char*>(impl_->kv.memory.data()) + block * bytes, from,
                     static_cast<std::size_t>(bytes));
}

std::int32_t decoder::block_table_width(const model_spec& spec, const decoder_options& o) {
  const std::int64_t context =
      o.max_context_tokens > 0 ? o.max_context_tokens : spec.context_length;
  return static_cast<std::int32_t>(
      std::min<std::int64_t>(o.n_blocks, (context + o.block_tokens - 1) / o.block_tokens));
}

std::int64_t decoder::weight_bytes() const {
  return impl_->weights.bytes();
}

const offload::weight_stream* decoder::stream() const {
  return impl_->weights.stream.get();
}

void decoder::record_to(offload::span_recorder* t, bool uses) {
  if (impl_->weights.stream) impl_->weights.stream->record_to(t, uses);
}

result<gpu::tensor_ref> decoder::forward(const step_batch& step, const step_payload& payload) {
  return impl_->forward(step, payload);
}

gpu::tensor_ref decoder::hidden() const {
  return impl_->hidden;
}

const unsigned char* decoder::payload_of(const step_batch& step) const {
  return impl_->own.step.payload_of(step);
}

result<std::unique_ptr<micro_batch>>
decoder::make_micro_batch(std::int32_t max_tokens, std::int32_t max_sequences, bool own_hidden) {
  std::unique_ptr<micro_batch> batch(new micro_batch);
  batch->impl_ = std::make_unique<micro_batch::impl>();
  step_limits limits = impl_->limits_for(max_tokens, max_sequences);
  limits.logit_rows = max_sequences;
  auto state = activations::create(*impl_->dev, impl_->spec, limits, own_hidden);
  if (!state.ok()) return state.error();
  batch->impl_->state = std::move(state).value();
  return batch;
}

void decoder::begin_pass(bool whole) {
  if (impl_->weights.stream) impl_->weights.stream->begin_pass(whole);
}

void decoder::prefetch(std::span<const std::int32_t> tokens) {
  if (impl_->weights.embedding_rows) impl_->weights.embedding_rows->prefetch(tokens);
}

void decoder::place_hidden(micro_batch& batch, float* hidden) {
  batch.impl_->state.hidden = hidden;
}

result<nothing> decoder::begin(micro_batch& batch, const step_batch& step) {
  return impl_->begin(batch.impl_->state, step, {});
}

std::int32_t decoder::n_stages() const {
  return impl_->n_stages();
}

std::int32_t decoder::kv_layer_of(std::int32_t stage) const {
  const decoder::impl::stage at = impl_->stage_at(stage);
  return at.attention ? static_cast<std::int32_t>(at.layer) : -1;
}

result<nothing> decoder::enter(std::int32_t stage) {
  return impl_->enter(stage);
}

void decoder::run(micro_batch& batch, std::int32_t stage, const gpu::kv_layer* staged) {
  activations& state = batch.impl_->state;
  state.staged_kv = staged == nullptr ? gpu::kv_layer{} : *staged;
  if (state.n_rows > 0) impl_->run(state, stage);
}

void decoder::leave(std::int32_t stage) {
  impl_->leave(stage);
}

result<gpu::tensor_ref> decoder::score(std::span<micro_batch* const> batches) {
  std::vector<activations*> states;
  for (micro_batch* b : batches)
    states.push_back(&b->impl_->state);
  return impl_->score(states);
}

} // namespace twill::models
