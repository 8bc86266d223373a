#include "models/decoder.hpp"

#include <algorithm>
#include <utility>

#include "gpu/ops/attention.hpp"
#include "gpu/ops/elementwise.hpp"
#include "models/detail/decoder_weights.hpp"
#include "models/detail/kv_arena.hpp"
#include "models/detail/step_arrays.hpp"
#include "models/detail/workspace.hpp"

namespace twill::models {
namespace {

gpu::tensor_ref matrix(float* data, std::int64_t rows, std::int64_t cols,
                       std::int64_t row_stride = 0) {
  return gpu::view_2d(data, gpu::dtype::f32, rows, cols, row_stride);
}

const float* floats(const gpu::buffer& b) {
  return static_cast<const float*>(b.data());
}

} // namespace

struct decoder::impl {
  gpu::device* dev = nullptr;
  model_spec spec;
  decoder_options options;
  decoder_weights weights;
  kv_arena kv;
  step_arrays step;
  workspace work;

  result<nothing> load(const checkpoint& source, const std::function<void(double)>& progress);
  gpu::tensor_ref forward(const step_input& input);
  void attend(std::int32_t layer);
  void finish_layer(const layer_weights& layer, gpu::tensor_ref attended, gpu::tensor_ref hidden);
};

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
  if (auto done = loaded->impl_->load(weights, progress); !done.ok()) return done.error();
  return loaded;
}

result<nothing> decoder::impl::load(const checkpoint& source,
                                    const std::function<void(double)>& progress) {
  // Small and certain to be needed comes first, so that a lack of memory shows before the packing.
  auto made_work = workspace::create(*dev, spec, options.max_step_tokens, options.max_logit_rows);
  if (!made_work.ok()) return made_work.error();
  work = std::move(made_work).value();

  auto made_kv = kv_arena::create(*dev, spec, options);
  if (!made_kv.ok()) return made_kv.error();
  kv = std::move(made_kv).value();

  step_limits limits;
  limits.tokens = options.max_step_tokens;
  limits.sequences = options.max_sequences;
  limits.logit_rows = options.max_logit_rows;
  limits.n_blocks = options.n_blocks;
  limits.block_tokens = options.block_tokens;
  limits.vocab_size = spec.vocab_size;
  limits.max_blocks = std::min(options.n_blocks, (spec.context_length + options.block_tokens - 1) /
                                                     options.block_tokens);
  auto made_step = step_arrays::create(*dev, limits);
  if (!made_step.ok()) return made_step.error();
  step = std::move(made_step).value();

  auto packed = load_weights(*dev, spec, source, options.compute, progress);
  if (!packed.ok()) return packed.error();
  weights = std::move(packed).value();
  return nothing{};
}

/// Projects this step's queries, keys and values, stores keys and values, and attends.
void decoder::impl::attend(std::int32_t index) {
  const layer_weights& layer = weights.layers[static_cast<std::size_t>(index)];
  const gpu::ragged_batch& batch = step.batch();
  const std::int64_t n = batch.n_tokens, q = spec.q_size(), kv_size = spec.kv_size(),
                     row = q + 2 * kv_size;
  const gpu::tensor_ref normed = matrix(work.normed, n, spec.hidden_size);
  gpu::rms_norm(*dev, matrix(work.hidden, n, spec.hidden_size), floats(layer.attention_norm),
                spec.norm_epsilon, normed);
  layer.qkv.apply(*dev, normed, matrix(work.qkv, n, row), false);

  gpu::rope_store_args store;
  store.q = matrix(work.qkv, n, q, row);
  store.k = matrix(work.qkv + q, n, kv_size, row);
  store.v = matrix(work.qkv + q + kv_size, n, kv_size, row);
  store.n_heads = spec.n_heads;
  store.rope = spec.rope;
  store.rotary_dim = spec.rotary_dim;
  store.cos = matrix(work.cos, n, spec.rotary_dim / 2);
  store.sin = matrix(work.sin, n, spec.rotary_dim / 2);
  store.kv = kv.layers[static_cast<std::size_t>(index)];
  gpu::rope_and_store(*dev, batch, store);

  gpu::attention_args attention;
  attention.q = store.q;
  attention.kv = store.kv;
  attention.n_heads = spec.n_heads;
  attention.scale = spec.attention_scale;
  attention.window = spec.window;
  attention.out = matrix(work.attended, n, q);
  gpu::attention(*dev, batch, attention);
}

/// The rest of a layer, on any subset of the step's rows: each row depends on itself alone.
void decoder::impl::finish_layer(const layer_weights& layer, gpu::tensor_ref attended,
                                 gpu::tensor_ref hidden) {
  const std::int64_t m = hidden.rows();
  const gpu::tensor_ref normed = matrix(work.normed, m, spec.hidden_size);
  const gpu::tensor_ref gate_up = matrix(work.gate_up, m, 2 * std::int64_t{spec.mlp_size});
  const gpu::tensor_ref activated = matrix(work.activated, m, spec.mlp_size);
  layer.o.apply(*dev, attended, hidden, true);
  gpu::rms_norm(*dev, hidden, floats(layer.mlp_norm), spec.norm_epsilon, normed);
  layer.gate_up.apply(*dev, normed, gate_up, false);
  gpu::silu_mul(*dev, gate_up, activated);
  layer.down.apply(*dev, activated, hidden, true);
}

gpu::tensor_ref decoder::impl::forward(const step_input& input) {
  step.set(*dev, input);
  const gpu::ragged_batch& batch = step.batch();
  const std::int64_t n = batch.n_tokens;
  const auto r = static_cast<std::int64_t>(input.logit_rows.size());
  const gpu::tensor_ref hidden = matrix(work.hidden, n, spec.hidden_size);
  const gpu::tensor_ref attended = matrix(work.attended, n, spec.q_size());
  const gpu::tensor_ref logits = matrix(work.logits, r, spec.vocab_size);
  if (n == 0) return logits;

  gpu::embedding(*dev, weights.embedding, step.tokens(), hidden);
  if (spec.rope != gpu::rope_kind::none)
    gpu::rope_angles(*dev, batch, floats(weights.inv_freq), spec.rotary_dim,
                     matrix(work.cos, n, spec.rotary_dim / 2),
                     matrix(work.sin, n, spec.rotary_dim / 2));
  for (std::int32_t l = 0; l + 1 < spec.n_layers; ++l) {
    attend(l);
    finish_layer(weights.layers[static_cast<std::size_t>(l)], attended, hidden);
  }
  attend(spec.n_layers - 1);
  if (r == 0) return logits;

  // Past the last attention only rows whose logits are wanted go on.
  const gpu::tensor_ref last_hidden = matrix(work.last_hidden, r, spec.hidden_size);
  const gpu::tensor_ref last_attended = matrix(work.last_attended, r, spec.q_size());
  gpu::gather_rows(*dev, hidden, step.logit_rows(), last_hidden);
  gpu::gather_rows(*dev, attended, step.logit_rows(), last_attended);
  finish_layer(weights.layers.back(), last_attended, last_hidden);

  gpu::linear_args head;
  head.x = matrix(work.normed, r, spec.hidden_size);
  head.weights = &weights.head_matrix();
  head.out = logits;
  head.compute = weights.head_compute;
  gpu::rms_norm(*dev, last_hidden, floats(weights.final_norm), spec.norm_epsilon, head.x);
  gpu::linear(*dev, head);
  return logits;
}

const model_spec& decoder::spec() const {
  return impl_->spec;
}

std::int64_t decoder::block_bytes(const model_spec& spec, const decoder_options& options) {
  return 2 * spec.n_layers * spec.kv_size() * options.block_tokens *
         static_cast<std::int64_t>(gpu::size_of(options.kv_type));
}

std::int64_t decoder::weight_bytes() const {
  return impl_->weights.bytes();
}

gpu::tensor_ref decoder::forward(const step_input& step) {
  return impl_->forward(step);
}

} // namespace twill::models
