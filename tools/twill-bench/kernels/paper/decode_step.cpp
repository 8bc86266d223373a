#include "tools/twill-bench/kernels/paper/decode_step.hpp"

#include <algorithm>
#include <utility>

#include "tools/twill-bench/kernels/paper/counts.hpp"

namespace twill::bench::paper {

namespace {

step_kernel made(const card& on, std::string name, std::int64_t launches,
                 const kernel_counts& counts) {
  return {std::move(name), launches, predict(on, counts), counts.dram_bytes};
}

double bytes(std::int64_t count, int each) {
  return static_cast<double>(count) * each;
}

/// Adds the kernels that work on one row at a time and that every step has. These kernels read f32
/// results of products and residuals, and write 16-bit inputs of products and 16-bit KV.
void add_row_kernels(const card& on, const seed_layer& seed, std::int64_t rows, decode_step& step) {
  const std::int64_t hidden = rows * seed.hidden, q = rows * seed.n_heads * seed.head_dim;
  const std::int64_t kv = rows * 2 * seed.n_kv_heads * seed.head_dim;
  step.kernels.push_back(
      made(on, "norm", 2 * seed.n_layers + 1, row_counts(on, rows, bytes(hidden, 4 + 2))));
  step.kernels.push_back(
      made(on, "rope, KV store", seed.n_layers, row_counts(on, rows, bytes(q + kv, 4 + 2))));
  step.kernels.push_back(
      made(on, "embedding", 1, row_counts(on, rows, bytes(hidden, 2 + 4), bytes(hidden, 2))));
}

void add_activation(const card& on, const seed_layer& seed, std::int64_t rows, decode_step& step) {
  const std::int64_t mlp = rows * seed.mlp;
  step.kernels.push_back(made(on, "activation", seed.n_layers,
                              row_counts(on, rows, bytes(mlp, (seed.gated ? 8 : 4) + 2))));
}

/// Adds the head, which computes the logits of `rows` rows, and the choice of tokens from them.
void add_choice(const card& on, const seed_layer& seed, std::int64_t rows, decode_step& step) {
  const std::int64_t logits = rows * seed.vocabulary;
  step.kernels.push_back(
      made(on, "head", 1, gemm_counts(on, rows, seed.hidden, seed.vocabulary, {16, 0})));
  step.kernels.push_back(
      made(on, "choice", 1, row_counts(on, rows * choice_blocks, bytes(logits, 4))));
  step.kernels.push_back(
      made(on, "choice, merge", 1, row_counts(on, rows, bytes(rows * choice_blocks, 8))));
}

} // namespace

std::int64_t decode_step::launches() const {
  std::int64_t sum = 0;
  for (const step_kernel& k : kernels)
    sum += k.launches;
  return sum;
}

double decode_step::gpu_s() const {
  double sum = 0;
  for (const step_kernel& k : kernels)
    sum += k.seconds();
  return sum;
}

double decode_step::step_s() const {
  return std::max(gpu_s(), static_cast<double>(launches()) * host_launch_s);
}

weight_format format_of(const seed_layer& seed) {
  if (seed.kind == gpu::weight_kind::grouped_u4) return {4, seed.group};
  return seed.kind == gpu::weight_kind::grouped_u8 ? weight_format{8, seed.group, seed.int8}
                                                   : weight_format{16, 0};
}

step_kernel product_of_step(const card& on, const seed_layer& seed, const product_shape& product,
                            std::int64_t rows, weight_format format) {
  return made(on, product.name, seed.n_layers,
              gemm_counts(on, rows, product.cols, product.rows, format));
}

step_kernel attention_of_step(const card& on, const seed_layer& seed, std::int64_t rows,
                              std::int64_t positions) {
  const attention_shape shape{seed.n_heads, seed.n_kv_heads, seed.head_dim};
  return made(on, "attention", seed.n_layers, attention_counts(on, shape, rows, positions));
}

step_kernel combine_of_step(const seed_layer& seed, std::int64_t positions) {
  step_kernel k;
  k.name = "combine";
  k.launches = positions > attention_chunk ? seed.n_layers : 0;
  k.one.seconds = combine_s;
  return k;
}

decode_step step_of(const card& on, const seed_layer& seed, std::int64_t rows,
                    std::int64_t positions) {
  decode_step step;
  step.rows = rows;
  for (const product_shape& product : seed.products())
    step.kernels.push_back(product_of_step(on, seed, product, rows, format_of(seed)));
  step.kernels.push_back(attention_of_step(on, seed, rows, positions));
  if (step_kernel combine = combine_of_step(seed, positions); combine.launches > 0)
    step.kernels.push_back(std::move(combine));
  add_row_kernels(on, seed, rows, step);
  add_activation(on, seed, rows, step);
  add_choice(on, seed, rows, step);
  return step;
}

kernel_counts prompt_product_counts(const card& on, const seed_layer& seed,
                                    const product_shape& product, std::int64_t rows) {
  const bool gated = seed.gated && product.rows == 2 * std::int64_t{seed.mlp};
  return prefill_counts(on, rows, product.cols, product.rows, format_of(seed), gated);
}

decode_step prompt_step_of(const card& on, const seed_layer& seed, std::int64_t rows) {
  decode_step step;
  step.rows = rows;
  for (const product_shape& p : seed.products())
    step.kernels.push_back(
        made(on, p.name, seed.n_layers, prompt_product_counts(on, seed, p, rows)));
  const attention_shape shape{seed.n_heads, seed.n_kv_heads, seed.head_dim};
  step.kernels.push_back(
      made(on, "attention", seed.n_layers, prefill_attention_counts(on, shape, rows)));
  add_row_kernels(on, seed, rows, step);
  if (!seed.gated) add_activation(on, seed, rows, step);
  add_choice(on, seed, 1, step);
  return step;
}

} // namespace twill::bench::paper
