// Attention over paged KV, for ragged batches with grouped heads.
//
// Values of one layer are shaped (n_blocks, n_kv_heads, block_tokens, head_dim), keys (n_blocks,
// n_kv_heads, head_dim, block_tokens): scores are wanted for neighbouring positions at once, and so
// vectors of positions lie side by side. One head's keys of one block are contiguous. Softmax is
// the online form; a row's result depends on its own sequence alone, never on its neighbours, the
// chunking or the thread count.
#pragma once

#include "gpu/device.hpp"
#include "gpu/ops/ragged.hpp"

namespace twill::gpu {

inline constexpr std::int32_t max_head_dim = 256;

/// One layer's KV arena. i8 KV has one scale per head and token: value = scale * code, with scale
/// the largest magnitude / 127, and codes rounded to nearest even.
struct kv_layer {
  void* keys = nullptr;    // (n_blocks, n_kv_heads, head_dim, block_tokens)
  void* values = nullptr;  // (n_blocks, n_kv_heads, block_tokens, head_dim)
  dtype type = dtype::f32; ///< f32, f16, bf16 or i8
  std::int32_t n_blocks = 0;
  std::int32_t n_kv_heads = 0;
  std::int32_t block_tokens = 0;
  std::int32_t head_dim = 0;     ///< at most max_head_dim
  float* key_scales = nullptr;   // (n_blocks, n_kv_heads, block_tokens), i8 only
  float* value_scales = nullptr; // same
  /// Elements from one block's keys to the next one's, and its values; 0: they follow each other.
  std::int64_t block_stride = 0;
  /// The same for scales.
  std::int64_t scale_stride = 0;
  /// Blocks numbered n_blocks and on lie so many elements further than their number says, in memory
  /// that need not be the others'; and their scales.
  std::int64_t apart = 0;
  std::int64_t scale_apart = 0;
};

enum class rope_kind : std::uint8_t {
  none,
  half_split,  ///< pairs (i, i + rotary_dim / 2): Hugging Face's Llama order
  interleaved, ///< pairs (2i, 2i + 1): GGUF's Llama order, ChatGLM
};

/// magnitude * cos and sin of position * inv_freq for every row of a step, once per step for all
/// layers.
void rope_angles(device& dev, const ragged_batch& batch,
                 const float* inv_freq,                   // (rotary_dim / 2) device
                 std::int32_t rotary_dim, tensor_ref cos, // (n_tokens, rotary_dim / 2) f32
                 tensor_ref sin,                          // same
                 float magnitude = 1);

struct rope_store_args {
  tensor_ref q; // (n_tokens, n_heads * head_dim) f32, rotated in place
  tensor_ref k; // (n_tokens, n_kv_heads * head_dim) f32, rotated, then written to `kv`
  tensor_ref v; // (n_tokens, n_kv_heads * head_dim) f32, written to `kv`
  std::int32_t n_heads = 0;
  rope_kind rope = rope_kind::none;
  std::int32_t rotary_dim = 0; ///< leading dimensions of each head that rotate; even
  tensor_ref cos, sin;         // (n_tokens, rotary_dim / 2) f32; unused for none
  kv_layer kv;
  /// Query rows at positions p with p + 1 > log_n_length are multiplied by ln(p + 1) /
  /// ln(log_n_length) (Qwen v1's log-n attention); 0: none.
  std::int32_t log_n_length = 0;
};

/// Rotates q and k and stores this step's keys and values at their positions' blocks.
void rope_and_store(device& dev, const ragged_batch& batch, const rope_store_args& args);

struct attention_args {
  tensor_ref q; // (n_tokens, n_heads * head_dim) f32
  kv_layer kv;
  std::int32_t n_heads = 0;
  float scale = 0;                     ///< usually 1 / sqrt(head_dim)
  std::int32_t window = 0;             ///< query i sees keys j with i - j < window; 0: all
  const float* alibi_slopes = nullptr; // (n_heads) device, or null
  tensor_ref out;                      // (n_tokens, n_heads * head_dim) f32
  /// Queries, keys, softmax weights and values may be rounded to bf16 before they are multiplied.
  /// Done on hosts that multiply bf16 faster than f32, unless the KV is f32.
  bool bf16_products = false;
};

void attention(device& dev, const ragged_batch& batch, const attention_args& args);

/// The most of device::scratch() that attention() takes for up to `n_tokens` rows that see up to
/// `reach` positions.
std::int64_t attention_scratch_bytes(const device& dev, std::int32_t n_heads,
                                     std::int32_t n_kv_heads, std::int32_t head_dim,
                                     std::int64_t n_tokens, std::int64_t reach);

} // namespace twill::gpu
