// decode_step: the kernels of one decode step, and of a prompt's step, of a seed model, by the
// model on paper. Pure functions.
//
// Launches are those of the code as it is planned: a layer has two norms, one kernel for rope and
// the store of KV, one for the activation, four products and attention in two launches; a residual
// is added by the product before it. KV has 16 bits, logits are f32, the head has 16-bit weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/twill-bench/kernels/paper/model.hpp"
#include "tools/twill-bench/kernels/paper/plans.hpp"
#include "tools/twill-bench/kernels/seed_layers.hpp"

namespace twill::bench::paper {

struct step_kernel {
  std::string name;
  std::int64_t launches = 0; ///< of a step
  predicted one;             ///< of one launch
  double dram_bytes = 0;     ///< of one launch

  double seconds() const { return static_cast<double>(launches) * one.seconds; }
};

struct decode_step {
  std::vector<step_kernel> kernels;
  std::int64_t rows = 0; ///< sequences, each with one token

  std::int64_t launches() const;
  /// What the GPU computes for, as in a graph: launches follow each other without the host.
  double gpu_s() const;
  /// Of a step outside of a graph: the host's launches, where they take longer.
  double step_s() const;
};

/// How a seed's weights are held.
weight_format format_of(const seed_layer& seed);

/// `format` overrides format_of(seed).
step_kernel product_of_step(const card& on, const seed_layer& seed, const product_shape& product,
                            std::int64_t rows, weight_format format);
step_kernel attention_of_step(const card& on, const seed_layer& seed, std::int64_t rows,
                              std::int64_t positions);
/// The launch that adds attention's chunks; none where there is one chunk.
step_kernel combine_of_step(const seed_layer& seed, std::int64_t positions);

decode_step step_of(const card& on, const seed_layer& seed, std::int64_t rows,
                    std::int64_t positions);

kernel_counts prompt_product_counts(const card& on, const seed_layer& seed,
                                    const product_shape& product, std::int64_t rows);

/// The step of a prompt of `rows` tokens: its products and attention are the kernels for prompts,
/// the product of gate and value has their activation inside, and one row goes through the head.
decode_step prompt_step_of(const card& on, const seed_layer& seed, std::int64_t rows);

/// The seeds that the report is about: those whose figures on an A100-40G are published.
inline constexpr int n_paper_seeds = 4; // the first of seed_layers

} // namespace twill::bench::paper
