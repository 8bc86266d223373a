// One pass of the decoder: embedding, layers, head.
#include <utility>
#include <vector>

#include "gpu/attention/attention.hpp"
#include "gpu/rows/elementwise.hpp"
#include "gpu/rows/embedding.hpp"
#include "gpu/rows/norms.hpp"
#include "gpu/rows/rope.hpp"
#include "models/decoder/decoder_impl.hpp"

namespace twill::models {
namespace {

gpu::tensor_ref matrix(float* data, std::int64_t rows, std::int64_t cols,
                       std::int64_t row_stride = 0) {
  return gpu::view_2d(data, gpu::dtype::f32, rows, cols, row_stride);
}

/// Where row `r` of a matrix begins.
void* row_of(const gpu::tensor_ref& x, std::int64_t r) {
  return x.as<unsigned char>() + r * x.row_stride * static_cast<std::int64_t>(gpu::size_of(x.type));
}

const float* floats(const gpu::buffer& b) {
  return static_cast<const float*>(b.data());
}

} // namespace

/// Token embeddings, projected where they are narrower, plus learned positions.
result<nothing> decoder::impl::embed(activations& a, const step_batch& input) {
  const gpu::tensor_ref hidden = matrix(a.hidden, a.n_rows, spec.hidden_size);
  const bool projected = spec.embedding_size != spec.hidden_size;
  const gpu::tensor_ref embedded =
      projected ? matrix(work.embedded, a.n_rows, spec.embedding_size) : hidden;
  if (weights.embedding_rows) {
    if (auto fetched = weights.embedding_rows->rows(*dev, input.tokens, embedded); !fetched.ok())
      return fetched;
  } else {
    gpu::embedding(*dev, weights.embedding, a.step.tokens(), embedded);
  }
  if (projected) weights.project_in.apply(*dev, embedded, hidden, false);
  if (weights.positions)
    gpu::embedding(*dev, weights.positions, a.step.position_rows(), hidden, true);
  return nothing{};
}

/// Projects this step's queries, keys and values, stores keys and values, and attends.
void decoder::impl::attend(activations& a, std::size_t index) {
  const layer_weights& layer = weights.layers[index];
  const bool staged = a.staged_kv.keys != nullptr;
  gpu::ragged_batch batch = a.step.batch();
  if (staged) batch.block_table = a.step.staged_table();
  const std::int64_t n = batch.n_tokens, q = spec.q_size(), kv_size = spec.kv_size(),
                     row = q + 2 * kv_size;
  gpu::tensor_ref x = matrix(a.hidden, n, spec.hidden_size);
  if (spec.norms == norm_place::before) {
    const gpu::tensor_ref normed = work.input(work.normed, n, spec.hidden_size);
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
  store.cos = matrix(a.cos, n, spec.rope.rotary_dim / 2);
  store.sin = matrix(a.sin, n, spec.rope.rotary_dim / 2);
  store.log_n_length = spec.log_n_length;
  store.kv = staged ? a.staged_kv : kv.layers[index];
  TWILL_ASSERT(store.kv.keys != nullptr, "a layer's KV is neither in the arena nor given");
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
  attention.window = spec.windowed.empty() || spec.windowed[index] ? spec.window : 0;
  attention.alibi_slopes = spec.alibi_slopes.empty() ? nullptr : floats(weights.alibi_slopes);
  attention.out = work.input(work.attended, n, q);
  attention.bf16_products =
      options.compute != gpu::compute_type::f32 && options.compute != gpu::compute_type::f16;
  gpu::attention(*dev, batch, attention);
}

const gpu::packed_matrix* decoder::impl::first_after(std::size_t layer) const {
  if (layer + 1 < weights.layers.size()) return &weights.layers[layer + 1].qkv.first_weights();
  return weights.stream ? &weights.parts_of_head().front().matrix : &weights.head_matrix();
}

/// Runs a layer's output projection, which adds to `hidden`. This and the MLP may run on any subset
/// of the rows, because after attention no row depends on another row.
void decoder::impl::close_attention(std::size_t index, gpu::tensor_ref attended,
                                    gpu::tensor_ref hidden) {
  const layer_weights& layer = weights.layers[index];
  layer.o.apply(*dev, attended, hidden, true, &layer.up.first_weights());
  if (spec.norms == norm_place::after)
    layer.attention_norm.apply(*dev, hidden, spec.norm_epsilon, hidden);
}

void decoder::impl::run_mlp(std::size_t index, gpu::tensor_ref hidden) {
  const layer_weights& layer = weights.layers[index];
  const std::int64_t m = hidden.rows();
  const bool before = spec.norms == norm_place::before;
  gpu::tensor_ref x = hidden;
  if (before) {
    x = work.input(work.normed, m, spec.hidden_size);
    layer.mlp_norm.apply(*dev, hidden, spec.norm_epsilon, x);
  }
  const gpu::tensor_ref activated = work.input(work.activated, m, spec.mlp_size);
  const std::int64_t before_cols = workspace::before_cols(spec, work.input_type);
  const gpu::tensor_ref up = before_cols == 0 ? activated : matrix(work.before, m, before_cols);
  if (spec.gated_mlp) {
    layer.up.apply_gated(*dev, x, up, activated, &layer.down.first_weights());
  } else {
    layer.up.apply(*dev, x, up, false, &layer.down.first_weights());
    gpu::activate(*dev, up, spec.activation, activated);
  }
  layer.down.apply(*dev, activated, hidden, true, first_after(index));
  if (!before) layer.mlp_norm.apply(*dev, hidden, spec.norm_epsilon, hidden);
}

result<nothing> decoder::impl::begin(activations& a, const step_batch& input,
                                     const step_payload& payload) {
  TWILL_ASSERT(input.fed_from.empty() || !weights.embedding_rows,
               "embeddings that live elsewhere are fetched for tokens that the host knows");
  if (auto uploaded = a.step.set(*dev, input, payload); !uploaded.ok()) return uploaded;
  a.n_rows = a.step.batch().n_tokens;
  a.n_logits = static_cast<std::int64_t>(input.logit_rows.size());
  a.n_hidden = input.n_hidden;
  if (a.n_rows == 0) return nothing{};
  if (auto embedded = embed(a, input); !embedded.ok()) return embedded;
  const std::int64_t half = spec.rope.rotary_dim / 2;
  return angles.set(*dev, spec.rope, floats(weights.inv_freq), input, a.step.batch(),
                    matrix(a.cos, a.n_rows, half), matrix(a.sin, a.n_rows, half));
}

decoder::impl::stage decoder::impl::stage_at(std::int32_t number) const {
  const auto n = static_cast<std::size_t>(number);
  if (!options.offload.sep_layer) return {n, true, true};
  return {n / 2, n % 2 == 0, n % 2 == 1};
}

std::int32_t decoder::impl::group_of(const stage& at) const {
  const layer_weights& layer = weights.layers[at.layer];
  return at.attention ? layer.group : layer.mlp_group;
}

result<nothing> decoder::impl::enter(std::int32_t stage) {
  if (!weights.stream) return nothing{};
  return weights.stream->acquire(group_of(stage_at(stage)));
}

void decoder::impl::leave(std::int32_t stage) {
  if (weights.stream) weights.stream->release(group_of(stage_at(stage)));
}

void decoder::impl::run(activations& a, std::int32_t number) {
  const stage at = stage_at(number);
  const bool last = at.layer + 1 == weights.layers.size();
  gpu::tensor_ref hidden = matrix(a.hidden, a.n_rows, spec.hidden_size);
  gpu::tensor_ref attended = work.input(work.attended, a.n_rows, spec.q_size());
  if (at.attention) attend(a, at.layer);
  // After the last layer's attention, only rows whose logits or final states are wanted are
  // computed further.
  if (last && a.n_logits == 0) return;
  if (last) {
    const gpu::tensor_ref last_hidden = matrix(a.last_hidden, a.n_logits, spec.hidden_size);
    const gpu::tensor_ref last_attended = work.input(work.last_attended, a.n_logits, spec.q_size());
    if (at.attention) {
      gpu::gather_rows(*dev, hidden, a.step.logit_rows(), last_hidden);
      gpu::gather_rows(*dev, attended, a.step.logit_rows(), last_attended);
    }
    hidden = last_hidden;
    attended = last_attended;
  }
  if (at.attention) close_attention(at.layer, attended, hidden);
  if (at.mlp) run_mlp(at.layer, hidden);
}

/// Rows of a pass that the head multiplies as one matrix.
struct decoder::impl::head_rows {
  gpu::tensor_ref x;
  std::int64_t first = 0;
};

gpu::tensor_ref decoder::impl::head_input(const activations& a, std::int64_t first) {
  const std::int64_t n = a.n_logits - a.n_hidden;
  gpu::tensor_ref x = matrix(a.last_hidden, n, spec.hidden_size);
  if (weights.final_norm) {
    gpu::tensor_ref normed = work.input(work.normed, n, spec.hidden_size);
    normed.data = row_of(normed, first);
    weights.final_norm.apply(*dev, x, spec.norm_epsilon, normed);
    x = normed;
  }
  if (spec.embedding_size == spec.hidden_size) return x;
  const gpu::tensor_ref embedded =
      matrix(work.embedded + first * spec.embedding_size, n, spec.embedding_size);
  weights.project_out.apply(*dev, x, embedded, false);
  return embedded;
}

/// The final norm is written in f32 over its input, because `work.normed` may have a narrower type.
gpu::tensor_ref decoder::impl::finish_hidden(const activations& a) {
  const std::int64_t first = a.n_logits - a.n_hidden;
  const gpu::tensor_ref x =
      matrix(a.last_hidden + first * spec.hidden_size, a.n_hidden, spec.hidden_size);
  if (weights.final_norm) weights.final_norm.apply(*dev, x, spec.norm_epsilon, x);
  if (spec.embedding_size == spec.hidden_size) return x;
  const gpu::tensor_ref embedded =
      matrix(work.embedded + first * spec.embedding_size, a.n_hidden, spec.embedding_size);
  weights.project_out.apply(*dev, x, embedded, false);
  return embedded;
}

void decoder::impl::multiply_head(const gpu::packed_matrix& head, std::int64_t first_column,
                                  std::span<const head_rows> rows, gpu::tensor_ref logits) {
  for (const head_rows& part : rows) {
    gpu::linear_args args;
    args.x = part.x;
    args.weights = &head;
    args.out = matrix(logits.as<float>() + part.first * logits.row_stride + first_column,
                      part.x.rows(), head.rows(), logits.row_stride);
    args.compute = weights.head_compute;
    gpu::linear(*dev, args);
  }
}

/// Computes the logits of the wanted rows of all batches, in the order of `batches`.
result<gpu::tensor_ref> decoder::impl::score(std::span<activations* const> batches) {
  std::vector<head_rows> rows;
  std::int64_t n = 0;
  for (activations* a : batches) {
    const std::int64_t own_rows = a->n_logits - a->n_hidden;
    if (own_rows == 0) continue;
    TWILL_ASSERT(n + own_rows <= options.max_logit_rows,
                 "a pass has more logit rows than max_logit_rows");
    const gpu::tensor_ref x = head_input(*a, n);
    // Adjacent rows are multiplied together, so that the head is read once for all of them.
    if (!rows.empty() && x.type == rows.back().x.type &&
        x.data == row_of(rows.back().x, rows.back().x.rows()))
      rows.back().x.shape[0] += x.rows();
    else
      rows.push_back({x, n});
    n += own_rows;
  }
  const gpu::tensor_ref logits = matrix(work.logits, n, spec.vocab_size);
  if (n == 0) return logits;
  if (!weights.stream) {
    multiply_head(weights.head_matrix(), 0, rows, logits);
  } else {
    for (const offload::table_part& part : weights.parts_of_head()) {
      if (auto acquired = weights.stream->acquire(part.group); !acquired.ok())
        return acquired.error();
      multiply_head(part.matrix, part.first_row, rows, logits);
      weights.stream->release(part.group);
    }
  }
  if (spec.normalised_head) gpu::scale_columns(*dev, logits, floats(weights.head_factors));
  return logits;
}

result<gpu::tensor_ref> decoder::impl::forward(const step_batch& input,
                                               const step_payload& payload) {
  const auto n_hidden = static_cast<std::size_t>(input.n_hidden);
  hidden = {};
  if (weights.stream) weights.stream->begin_pass(input.logit_rows.size() > n_hidden);
  if (auto begun = begin(own, input, payload); !begun.ok()) return begun.error();
  if (own.n_rows == 0) return matrix(work.logits, own.n_logits, spec.vocab_size);
  for (std::int32_t s = 0; s < n_stages(); ++s) {
    if (auto entered = enter(s); !entered.ok()) return entered.error();
    run(own, s);
    leave(s);
  }
  if (own.n_hidden > 0) hidden = finish_hidden(own);
  activations* const all[] = {&own};
  return score(all);
}

} // namespace twill::models
