// How attention is launched, and which KV its kernels take: arithmetic of the host.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpu/attention/attention.hpp"
#include "gpu/attention/cuda/decode_shape.hpp"
#include "gpu/attention/cuda/prefill_shape.hpp"

namespace twill::gpu::cuda {

struct decode_plan {
  std::int32_t parts;        ///< blocks that share the query heads of a KV head
  std::int32_t chunks;       ///< that a row sees at most
  std::int32_t splits;       ///< blocks that share a row's chunks
  std::int64_t rows_at_once; ///< of a launch
  std::int64_t result_bytes; ///< of the chunks' results of a launch; 0 with one split
};

/// Blocks of a launch from which on every block takes all chunks of its row. Some hundred run at
/// once, and not all have as much to do.
inline constexpr std::int64_t decode_enough_blocks = 2048;
/// Blocks of a launch at most, as CUDA has it.
inline constexpr std::int64_t decode_most_blocks = 0x7fffffff;
/// Rows whose results take more go through several launches.
inline constexpr std::int64_t decode_most_result_bytes = std::int64_t{64} << 20;

struct decode_heads {
  std::int32_t n_heads, n_kv_heads, head_dim;

  std::int32_t group() const { return n_heads / n_kv_heads; }
  std::int32_t parts() const {
    const std::int32_t heads = decode_tile_heads * (group() <= decode_tile_heads ? 1 : 2);
    return (group() + heads - 1) / heads;
  }
  /// Blocks of a row without splits.
  std::int64_t blocks() const { return std::int64_t{n_kv_heads} * parts(); }
  std::int64_t result_bytes(std::int64_t chunks) const {
    return n_heads * chunks * (head_dim + 2) * std::int64_t{sizeof(float)};
  }
};

/// For rows that see up to `reach` positions, of which a window (0: none) hides the earlier ones.
inline decode_plan plan_decode(const decode_heads& of, std::int64_t n_tokens, std::int64_t reach,
                               std::int32_t window) {
  std::int64_t chunks = (reach + decode_chunk - 1) / decode_chunk;
  if (window > 0)
    chunks = std::min(chunks, (std::int64_t{window} + decode_chunk - 2) / decode_chunk + 1);
  const std::int64_t blocks = n_tokens * of.blocks();
  decode_plan plan{of.parts(), static_cast<std::int32_t>(chunks), 1,
                   std::min(n_tokens, decode_most_blocks / of.blocks()), 0};
  if (chunks <= 1 || blocks >= decode_enough_blocks) return plan;
  const std::int64_t row_bytes = of.result_bytes(chunks);
  plan.rows_at_once =
      std::min(n_tokens, std::max(std::int64_t{1}, decode_most_result_bytes / row_bytes));
  plan.result_bytes = plan.rows_at_once * row_bytes;
  const std::int64_t at_once = plan.rows_at_once * of.blocks();
  plan.splits =
      static_cast<std::int32_t>(std::min(chunks, (decode_enough_blocks + at_once - 1) / at_once));
  return plan;
}

/// The most result bytes of plans for up to `n_tokens` rows that see up to `reach` positions.
inline std::int64_t most_result_bytes(const decode_heads& of, std::int64_t n_tokens,
                                      std::int64_t reach) {
  const std::int64_t split_rows = (decode_enough_blocks - 1) / of.blocks();
  const std::int64_t row = of.result_bytes((reach + decode_chunk - 1) / decode_chunk);
  const std::int64_t all = std::min(n_tokens, split_rows) * row;
  // Where not all rows fit, those that see fewer chunks may fill the rest.
  return reach <= decode_chunk ? 0 : std::min(all, std::max(decode_most_result_bytes, row));
}

/// Whether there is a kernel for keys and values of this kind. Copies of 16 bytes take 4 positions
/// of a key in f32, 8 of one in 16 bits, and 16 of one in int8.
inline bool decode_takes(const kv_layer& kv) {
  const auto bytes = static_cast<std::int64_t>(size_of(kv.type));
  const bool dim = kv.head_dim == 64 || kv.head_dim == 80 || kv.head_dim == 96 ||
                   kv.head_dim == 128 || kv.head_dim == 256;
  const auto is_aligned = [](const void* p) {
    return reinterpret_cast<std::uintptr_t>(p) % 16 == 0;
  };
  return dim && kv.block_tokens * bytes % 16 == 0 && kv.block_stride * bytes % 16 == 0 &&
         kv.apart * bytes % 16 == 0 && is_aligned(kv.keys) && is_aligned(kv.values);
}

/// Whether prefill attention takes KV that decode attention takes. It keeps a place in a block in
/// 16 bits, in pieces of 8 positions or more.
inline bool prefill_takes(const kv_layer& kv) {
  return kv.type != dtype::f32 && kv.head_dim <= 128 && kv.block_tokens <= 65536 * 8;
}

/// Tiles of a prefill attention launch for each KV head: see prefill_tile_of().
inline std::int64_t prefill_tiles(std::int64_t n_tokens, std::int64_t n_sequences,
                                  std::int32_t group) {
  return n_tokens * group / prefill_rows + n_sequences;
}

/// Rows beyond one for each sequence, times KV heads, from which on prefill attention takes the
/// sequences that have several rows. A block of it takes all chunks of its rows, one after the
/// other, so few rows would leave most of the GPU idle, where decode attention splits chunks among
/// blocks.
inline constexpr std::int64_t prefill_enough_rows = 256;

/// Which kernels a step takes. A row has the same bits in either.
inline bool prefill_pays(const decode_heads& of, std::int64_t n_tokens, std::int64_t n_sequences) {
  return (n_tokens - n_sequences) * of.n_kv_heads >= prefill_enough_rows &&
         n_tokens * of.group() <= 0x7fffffff &&
         prefill_tiles(n_tokens, n_sequences, of.group()) * of.n_kv_heads <= decode_most_blocks;
}

} // namespace twill::gpu::cuda
