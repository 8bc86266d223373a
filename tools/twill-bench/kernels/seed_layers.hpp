// seed_layers: the shapes of one layer, and the number of layers, of the seed models. For these
// models, figures of other programs are published, with which twill is compared. gguf_layers and
// w8a8_layer hold the shapes of models with other weights. The harness of the CUDA kernels
// (tools/gpu-kernels) measures the same shapes.
#pragma once

#include <array>
#include <cstdint>

#include "gpu/linear/weight_kind.hpp"

namespace twill::bench {

/// One product of a layer: out (m, rows) = x (m, cols) * W^T.
struct product_shape {
  const char* name; ///< "qkv", "o", "up" (with the gate, where there is one) or "down"
  std::int64_t cols, rows;
};

struct seed_layer {
  const char* name;
  gpu::weight_kind kind;
  std::int32_t group; ///< columns per scale and zero point; 0 for dense kinds
  std::int32_t hidden, n_heads, n_kv_heads, head_dim, mlp;
  bool gated; ///< the product "up" also has the gate's rows, which lie before its own
  bool alibi;
  std::int32_t n_layers, vocabulary;
  bool float_scales = false; ///< scales are products of two floats, as in Q6_K
  bool int8 = false;         ///< activations are int8, as with `model.compute` w8a8

  std::array<product_shape, 4> products() const {
    const std::int64_t qkv = std::int64_t{n_heads + 2 * n_kv_heads} * head_dim;
    return {{{"qkv", hidden, qkv},
             {"o", std::int64_t{n_heads} * head_dim, hidden},
             {"up", hidden, std::int64_t{gated ? 2 : 1} * mlp},
             {"down", mlp, hidden}}};
  }
};

inline constexpr seed_layer seed_layers[] = {
    {"mistral-7b-awq", gpu::weight_kind::grouped_u4, 128, 4096, 32, 8, 128, 14336, true, false, 32,
     32000},
    {"baichuan2-13b-gptq", gpu::weight_kind::grouped_u4, 128, 5120, 40, 40, 128, 13696, true, true,
     40, 125696},
    {"chatglm3-6b", gpu::weight_kind::f16, 0, 4096, 32, 2, 128, 13696, true, false, 28, 65024},
    {"qwen-14b", gpu::weight_kind::bf16, 0, 5120, 40, 40, 128, 13696, true, false, 40, 152064},
    {"opt-1.3b", gpu::weight_kind::f16, 0, 2048, 32, 32, 64, 8192, false, false, 24, 50272},
};
/// Layers of GGUF files with 8-bit codes. No seed model has such weights, but many people run them.
inline constexpr seed_layer gguf_layers[] = {
    {"mistral-7b-q8_0", gpu::weight_kind::grouped_u8, 32, 4096, 32, 8, 128, 14336, true, false, 32,
     32000},
    {"mistral-7b-q6_k", gpu::weight_kind::grouped_u8, 16, 4096, 32, 8, 128, 14336, true, false, 32,
     32000, true},
};
/// Mistral 7B as w8a8 rounds it, in groups of 256 columns, which divide its rows evenly.
inline constexpr seed_layer w8a8_layer = {"mistral-7b-w8a8",
                                          gpu::weight_kind::grouped_u8,
                                          256,
                                          4096,
                                          32,
                                          8,
                                          128,
                                          14336,
                                          true,
                                          false,
                                          32,
                                          32000,
                                          false,
                                          true};
/// Toy shapes, to test a program.
inline constexpr seed_layer small_seed_layers[] = {
    {"small-u4", gpu::weight_kind::grouped_u4, 128, 256, 4, 2, 64, 384, true, true, 2, 512},
    {"small-f16", gpu::weight_kind::f16, 0, 128, 2, 2, 64, 256, false, false, 2, 512},
};

} // namespace twill::bench
