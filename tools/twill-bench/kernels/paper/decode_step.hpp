// decode_step: lists the kernels of one decode step, or of the step that computes one prompt, of a
// seed model (seed_layers.hpp). The model on paper (model.hpp) predicts their times. The functions
// are pure.
//
// The launches are those that are planned for twill on a GPU. A layer has two norms, one kernel for
// rope and the store of KV, one for the activation, four products, and attention in two launches.
// The product before a residual adds the residual. KV has 16 bits, logits are f32, and the LM head
// has 16-bit weights.
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
  std::int64_t launches = 0; ///< number of launches in a step
  predicted one;             ///< of one launch
  double dram_bytes = 0;     ///< of one launch

  double seconds() const { return static_cast<double>(launches) * one.seconds; }
};

struct decode_step {
  std::vector<step_kernel> kernels;
  std::int64_t rows = 0; ///< sequences, each with one token

  std::int64_t launches() const;
  /// The time that the GPU computes. In a CUDA graph this is the whole step, because launches
  /// follow each other without the host.
  double gpu_s() const;
  /// The time of a step outside of a CUDA graph: the larger of gpu_s() and the time that the host
  /// takes for all launches.
  double step_s() const;
};

/// How the weights of a seed model are stored.
weight_format format_of(const seed_layer& seed);

/// `format` replaces format_of(seed).
step_kernel product_of_step(const card& on, const seed_layer& seed, const product_shape& product,
                            std::int64_t rows, weight_format format);
step_kernel attention_of_step(const card& on, const seed_layer& seed, std::int64_t rows,
                              std::int64_t positions);
/// The kernel that adds up the results of attention over the chunks of a sequence. It has 0
/// launches where there is only one chunk.
step_kernel combine_of_step(const seed_layer& seed, std::int64_t positions);

decode_step step_of(const card& on, const seed_layer& seed, std::int64_t rows,
                    std::int64_t positions);

kernel_counts prompt_product_counts(const card& on, const seed_layer& seed,
                                    const product_shape& product, std::int64_t rows);

/// The step of a prompt of `rows` tokens. Its products and its attention use the kernels for
/// prompts. Where the MLP has a gate, the activation is part of the product of gate and up. Only
/// one row goes through the LM head.
decode_step prompt_step_of(const card& on, const seed_layer& seed, std::int64_t rows);

/// The report covers the seed models with published figures on an A100-40G.
inline constexpr int n_paper_seeds = 4; // the first entries of seed_layers

} // namespace twill::bench::paper
