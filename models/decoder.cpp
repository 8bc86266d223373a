#include "models/decoder.hpp"

#include <algorithm>
#include <utility>

#include "gpu/ops/attention.hpp"
#include "gpu/ops/elementwise.hpp"
#include "models/detail/decoder_weights.hpp"
#include "models/detail/kv_arena.hpp"
#include "models/detail/rotary_angles.hpp"
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
  rotary_angles angles;

  result<nothing> load(const checkpoint& source, const std::function<void(double)>& progress);
  gpu::tensor_ref forward(const step_input& input);
  void embed(gpu::tensor_ref hidden);
  void attend(std::int32_t layer);
  void finish_layer(std::size_t index, gpu::tensor_ref attended, gpu::tensor_ref hidden);
  void score(gpu::tensor_ref hidden, gpu::tensor_ref logits);
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
  limits.position_offset = spec.position_offset;
  limits.most_positions = spec.most_positions;
  limits.tokens = options.max_step_tokens;
  limits.sequences = options.max_sequences;
  limits.logit_rows = options.max_logit_rows;
  limits.n_blocks = options.n_blocks;
  limits.block_tokens = options.block_tokens;
  limits.vocab_size = spec.vocab_size;
  const std::int32_t context =
      options.max_context_tokens > 0 ? options.max_context_tokens : spec.context_length;
  limits.max_blocks =
      std::min(options.n_blocks, (context + options.block_tokens - 1) / options.block_tokens);
  auto made_step = step_arrays::create(*dev, limits);
  if (!made_step.ok()) return made_step.error();
  step = std::move(made_step).value();

  auto packed = load_weights(*dev, spec, source, options.compute, progress);
  if (!packed.ok()) return packed.error();
  weights = std::move(packed).value();
  dev->settle();
  return nothing{};
}

/// Token embeddings, projected where they are narrower, plus learned positions.
void decoder::impl::embed(gpu::tensor_ref hidden) {
  if (spec.embedding_size == spec.hidden_size) {
    gpu::embedding(*dev, weights.embedding, step.tokens(), hidden);
  } else {
    const gpu::tensor_ref embedded = matrix(work.embedded, hidden.rows(), spec.embedding_size);
    gpu::embedding(*dev, weights.embedding, step.tokens(), embedded);
    weights.project_in.apply(*dev, embedded, hidden, false);
  }
  if (weights.positions)
    gpu::embedding(*dev, weights.positions, step.position_rows(), hidden, true);
}

/// Projects this step's queries, keys and values, stores keys and values, and attends.
void decoder::impl::attend(std::int32_t index) {
  const layer_weights& layer = weights.layers[static_cast<std::size_t>(index)];
  const gpu::ragged_batch& batch = step.batch();
  const std::int64_t n = batch.n_tokens, q = spec.q_size(), kv_size = spec.kv_size(),
                     row = q + 2 * kv_size;
  gpu::tensor_ref x = matrix(work.hidden, n, spec.hidden_size);
  if (spec.norms == norm_place::before) {
    const gpu::tensor_ref normed = matrix(work.normed, n, spec.hidden_size);
    layer.attention_norm.apply(*dev, x, spec.norm_epsilon, normed);
    x = normed;
  }
  layer.qkv.apply(*dev, x, matrix(work.qkv, n, row), false, &layer.o.first_weights());

  gpu::rope_store_args store;
  store.q = matrix(work.qkv, n, q, row);
  store.k = matrix(work.qkv + q, n, kv_size, row);
  store.v = matrix(work.qkv + q + kv_size, n, kv_size, row);
  store.n_heads = spec.n_heads;
  store.rope = spec.rope.kind;
  store.rotary_dim = spec.rope.rotary_dim;
  store.cos = matrix(work.cos, n, spec.rope.rotary_dim / 2);
  store.sin = matrix(work.sin, n, spec.rope.rotary_dim / 2);
  store.log_n_length = spec.log_n_length;
  store.kv = kv.layers[static_cast<std::size_t>(index)];
  if (layer.q_norm.data() != nullptr)
    gpu::head_norm(*dev, store.q, spec.n_heads, floats(layer.q_norm), spec.norm_epsilon);
  if (layer.k_norm.data() != nullptr)
    gpu::head_norm(*dev, store.k, spec.n_kv_heads, floats(layer.k_norm), spec.norm_epsilon);
  gpu::rope_and_store(*dev, batch, store);

  gpu::attention_args attention;
  attention.q = store.q;
  attention.kv = store.kv;
  attention.n_heads = spec.n_heads;
  attention.scale = spec.attention_scale;
  attention.window =
      spec.windowed.empty() || spec.windowed[static_cast<std::size_t>(index)] ? spec.window : 0;
  attention.alibi_slopes = spec.alibi_slopes.empty() ? nullptr : floats(weights.alibi_slopes);
  attention.out = matrix(work.attended, n, q);
  gpu::attention(*dev, batch, attention);
}

/// The rest of a layer, on any subset of the step's rows: each row depends on itself alone.
void decoder::impl::finish_layer(std::size_t index, gpu::tensor_ref attended,
                                 gpu::tensor_ref hidden) {
  const layer_weights& layer = weights.layers[index];
  const gpu::packed_matrix* next = index + 1 < weights.layers.size()
                                       ? &weights.layers[index + 1].qkv.first_weights()
                                       : &weights.head_matrix();
  const std::int64_t m = hidden.rows();
  const bool before = spec.norms == norm_place::before;
  gpu::tensor_ref x = before ? matrix(work.normed, m, spec.hidden_size) : hidden;
  layer.o.apply(*dev, attended, hidden, true, &layer.up.first_weights());
  // After: the attention's norm closes its residual sum. Before: the MLP's norm opens it.
  (before ? layer.mlp_norm : layer.attention_norm).apply(*dev, hidden, spec.norm_epsilon, x);

  const gpu::tensor_ref activated = matrix(work.activated, m, spec.mlp_size);
  if (spec.gated_mlp) {
    const gpu::tensor_ref gate_up = matrix(work.gate_up, m, 2 * std::int64_t{spec.mlp_size});
    layer.up.apply(*dev, x, gate_up, false, &layer.down.first_weights());
    gpu::silu_mul(*dev, gate_up, activated);
  } else {
    layer.up.apply(*dev, x, activated, false, &layer.down.first_weights());
    gpu::activate(*dev, activated, spec.activation);
  }
  layer.down.apply(*dev, activated, hidden, true, next);
  if (!before) layer.mlp_norm.apply(*dev, hidden, spec.norm_epsilon, hidden);
}

/// Logits of the rows in `hidden`, which is used up.
void decoder::impl::score(gpu::tensor_ref hidden, gpu::tensor_ref logits) {
  gpu::linear_args head;
  head.x = hidden;
  if (weights.final_norm) {
    head.x = matrix(work.normed, hidden.rows(), spec.hidden_size);
    weights.final_norm.apply(*dev, hidden, spec.norm_epsilon, head.x);
  }
  if (spec.embedding_size != spec.hidden_size) {
    const gpu::tensor_ref embedded = matrix(work.embedded, hidden.rows(), spec.embedding_size);
    weights.project_out.apply(*dev, head.x, embedded, false);
    head.x = embedded;
  }
  head.weights = &weights.head_matrix();
  head.out = logits;
  head.compute = weights.head_compute;
  gpu::linear(*dev, head);
  if (spec.normalised_head) gpu::scale_columns(*dev, logits, floats(weights.head_factors));
}

gpu::tensor_ref decoder::impl::forward(const step_input& input) {
  step.set(*dev, input);
  const std::int64_t n = step.batch().n_tokens;
  const auto r = static_cast<std::int64_t>(input.logit_rows.size());
  const gpu::tensor_ref hidden = matrix(work.hidden, n, spec.hidden_size);
  const gpu::tensor_ref attended = matrix(work.attended, n, spec.q_size());
  const gpu::tensor_ref logits = matrix(work.logits, r, spec.vocab_size);
  if (n == 0) return logits;

  embed(hidden);
  angles.set(*dev, spec.rope, floats(weights.inv_freq), input, step.batch(),
             matrix(work.cos, n, spec.rope.rotary_dim / 2),
             matrix(work.sin, n, spec.rope.rotary_dim / 2));
  for (std::int32_t l = 0; l + 1 < spec.n_layers; ++l) {
    attend(l);
    finish_layer(static_cast<std::size_t>(l), attended, hidden);
  }
  attend(spec.n_layers - 1);
  if (r == 0) return logits;

  // Past the last attention only rows whose logits are wanted go on.
  const gpu::tensor_ref last_hidden = matrix(work.last_hidden, r, spec.hidden_size);
  const gpu::tensor_ref last_attended = matrix(work.last_attended, r, spec.q_size());
  gpu::gather_rows(*dev, hidden, step.logit_rows(), last_hidden);
  gpu::gather_rows(*dev, attended, step.logit_rows(), last_attended);
  finish_layer(weights.layers.size() - 1, last_attended, last_hidden);
  score(last_hidden, logits);
  return logits;
}

const model_spec& decoder::spec() const {
  return impl_->spec;
}

std::int64_t decoder::block_bytes(const model_spec& spec, const decoder_options& options) {
  return kv_arena::block_bytes(spec, options);
}

std::int64_t decoder::weight_bytes() const {
  return impl_->weights.bytes();
}

gpu::tensor_ref decoder::forward(const step_input& step) {
  return impl_->forward(step);
}

} // namespace twill::models
