// The host micro-kernels of attention, one table per instruction set.
//
// KV is read in tiles of 64 positions and chunks of 512, both counted from position 0, regardless
// of which rows are computed together. Online softmax (Milakov and Gimelshein 2018) gives a
// maximum, a sum and weighted values for each chunk; the results of the chunks are merged in order,
// as in Flash-Decoding. So a row's bits depend only on its own sequence. The functions are pure and
// work on the caller's memory; any thread.
#pragma once

#include <cstdint>

#include "gpu/host/isa.hpp"
#include "gpu/tensor.hpp"

namespace twill::gpu::host {

inline constexpr int attention_tile = 64;     ///< positions per softmax step
inline constexpr int attention_chunk = 512;   ///< positions per partial result
inline constexpr int attention_max_rows = 96; ///< queries * heads of one call
inline constexpr int attention_max_dim = 256; ///< largest head_dim

/// The arguments of one call: some query heads that share a KV head, for some neighbouring rows of
/// one sequence.
struct attention_work {
  const void* keys = nullptr;          // (n_blocks, n_kv_heads, head_dim, block_tokens)
  const void* values = nullptr;        // (n_blocks, n_kv_heads, block_tokens, head_dim)
  const float* key_scales = nullptr;   // (n_blocks, n_kv_heads, block_tokens), i8 only
  const float* value_scales = nullptr; // (n_blocks, n_kv_heads, block_tokens), i8 only
  dtype type = dtype::f32;
  std::int32_t kv_head = 0, block_tokens = 0, head_dim = 0;
  std::int64_t block_stride = 0,
               scale_stride = 0; ///< elements, and scales, from one KV block to the next
  std::int32_t n_blocks = 0;     ///< n_blocks, apart and scale_apart are those of kv_layer
  std::int64_t apart = 0, scale_apart = 0;
  const std::int32_t* blocks = nullptr; ///< the sequence's row of the block table

  const float* q = nullptr; // (n_queries, stride q_stride): n_heads * head_dim floats each
  std::int64_t q_stride = 0;
  const std::int32_t* positions = nullptr; // (n_queries)
  std::int32_t n_queries = 0, n_heads = 0; ///< n_queries * n_heads <= attention_max_rows
  float scale = 0;
  std::int32_t window = 0;
  const float* slopes = nullptr; // (n_heads) ALiBi slopes, or null

  float* out = nullptr; // (n_queries, stride out_stride): n_heads * head_dim floats each
  std::int64_t out_stride = 0;
};

/// The number of floats in the result of a chunk of 512 positions for one row: maximum, sum, and
/// head_dim values that are not divided by the sum yet.
constexpr std::int64_t attention_partial_floats(std::int32_t head_dim) {
  return 2 + std::int64_t{head_dim};
}

struct attention_kernels {
  /// Computes all of `work`, into work.out.
  void (*whole)(const attention_work& work);
  /// Computes one chunk. The result of row (query, head) goes to partials + query * query_stride +
  /// head * head_stride; rows that see nothing of the chunk get sum 0.
  void (*chunk)(const attention_work& work, std::int32_t chunk, float* partials,
                std::int64_t query_stride, std::int64_t head_stride);
  /// Merges n partials of one row, in order, and writes head_dim results.
  void (*merge)(const float* partials, std::int64_t partial_stride, std::int32_t n,
                std::int32_t head_dim, float* out);
};

/// The kernels of an instruction-set level. `bf16_products` allows operands to be rounded to bf16
/// before they are multiplied; this happens where the level has bf16 instructions and the KV is not
/// f32.
attention_kernels attention_kernels_for(isa level, bool bf16_products);

/// Each function is defined in the source file of the same name; the x86 functions exist where
/// TWILL_X86 is defined.
attention_kernels attention_plain();
attention_kernels attention_avx2();
attention_kernels attention_avx512();
attention_kernels attention_avx512_bf16();

} // namespace twill::gpu::host
