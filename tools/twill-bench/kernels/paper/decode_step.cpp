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
  return seed.kind == gpu::weight_kind::grouped_u8 ? weight_format{8, seed.group}
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
  const std::int64_t hidden = rows * seed.hidden, mlp = rows * seed.mlp;
  const std::int64_t q = rows * seed.n_heads * seed.head_dim;
  const std::int64_t kv = rows * 2 * seed.n_kv_heads * seed.head_dim;
  const std::int64_t logits = rows * seed.vocabulary;
  decode_step step;
  step.rows = rows;
  const auto add = [&](step_kernel k) {
    if (k.launches > 0) step.kernels.push_back(std::move(k));
  };
  for (const product_shape& product : seed.products())
    add(product_of_step(on, seed, product, rows, format_of(seed)));
  add(attention_of_step(on, seed, rows, positions));
  add(combine_of_step(seed, positions));
  // f32 from products and residuals, 16 bits to the next product and to KV.
  add(made(on, "norm", 2 * seed.n_layers + 1, row_counts(on, rows, bytes(hidden, 4 + 2))));
  add(made(on, "rope, KV store", seed.n_layers, row_counts(on, rows, bytes(q + kv, 4 + 2))));
  add(made(on, "activation", seed.n_layers,
           row_counts(on, rows, bytes(mlp, (seed.gated ? 8 : 4) + 2))));
  add(made(on, "embedding", 1, row_counts(on, rows, bytes(hidden, 2 + 4), bytes(hidden, 2))));
  add(made(on, "head", 1, gemm_counts(on, rows, seed.hidden, seed.vocabulary, {16, 0})));
  add(made(on, "choice", 1, row_counts(on, rows * choice_blocks, bytes(logits, 4))));
  add(made(on, "choice, merge", 1, row_counts(on, rows, bytes(rows * choice_blocks, 8))));
  return step;
}

} // namespace twill::bench::paper
