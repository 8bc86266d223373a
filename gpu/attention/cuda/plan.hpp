// Plans how attention is launched and decides which KV its kernels support. Host code without CUDA
// calls.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpu/attention/attention.hpp"
#include "gpu/attention/cuda/decode_shape.hpp"
#include "gpu/attention/cuda/prefill_shape.hpp"

namespace twill::gpu::cuda {

struct decode_plan {
  std::int32_t parts;        ///< blocks that share the query heads of a KV head
  std::int32_t chunks;       ///< the most chunks that a row sees
  std::int32_t splits;       ///< blocks that share a row's chunks
  std::int64_t rows_at_once; ///< of a launch
  std::int64_t result_bytes; ///< bytes of the chunks' results of a launch; 0 with one split
};

/// A launch of at least this many blocks keeps a GPU busy, so every block then computes its row
/// alone. In smaller launches several blocks (splits) share the chunks of a row. A GPU runs a few
/// hundred blocks at once; the number is several times larger, because some rows have more chunks
/// of 256 positions than others.
inline constexpr std::int64_t decode_enough_blocks = 2048;
/// The most blocks that CUDA allows in a launch.
inline constexpr std::int64_t decode_most_blocks = 0x7fffffff;
/// A launch stores partial results for the chunks of its rows. If they take more bytes than this,
/// the rows are divided among several launches.
inline constexpr std::int64_t decode_most_result_bytes = std::int64_t{64} << 20;

struct decode_heads {
  std::int32_t n_heads, n_kv_heads, head_dim;

  std::int32_t group() const { return n_heads / n_kv_heads; }
  std::int32_t parts() const {
    const std::int32_t heads = decode_tile_heads * (group() <= decode_tile_heads ? 1 : 2);
    return (group() + heads - 1) / heads;
  }
  /// The number of blocks per row without splits.
  std::int64_t blocks() const { return std::int64_t{n_kv_heads} * parts(); }
  std::int64_t result_bytes(std::int64_t chunks) const {
    return n_heads * chunks * (head_dim + 2) * std::int64_t{sizeof(float)};
  }
};

/// The plan for launching decode attention for `n_tokens` rows (one token each) that see up to
/// `reach` positions, or only the last `window` of them (0: no window).
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

/// The largest decode_plan::result_bytes of all plans for up to `n_tokens` tokens that see up to
/// `reach` positions.
inline std::int64_t most_result_bytes(const decode_heads& of, std::int64_t n_tokens,
                                      std::int64_t reach) {
  const std::int64_t split_rows = (decode_enough_blocks - 1) / of.blocks();
  const std::int64_t row = of.result_bytes((reach + decode_chunk - 1) / decode_chunk);
  const std::int64_t all = std::min(n_tokens, split_rows) * row;
  // Where not all rows fit into one launch, rows that see fewer chunks may use the full limit.
  return reach <= decode_chunk ? 0 : std::min(all, std::max(decode_most_result_bytes, row));
}

/// Whether the decode kernel supports this KV. The kernel copies 16 aligned bytes at a time, which
/// hold 4 positions of a key's dimension in f32, 8 in a 16-bit type and 16 in int8.
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

/// Whether prefill attention supports this KV, for KV that decode attention supports. The prefill
/// kernel stores a position's offset in its KV block as a 16-bit number of pieces, each of which is
/// 8 positions (16-bit KV) or 16 (int8 KV). So it supports blocks of up to 65536 * 8 positions.
inline bool prefill_takes(const kv_layer& kv) {
  return kv.type != dtype::f32 && kv.head_dim <= 128 && kv.block_tokens <= 65536 * 8;
}

/// The number of tiles per KV head in a launch of prefill attention: see prefill_tile_of().
inline std::int64_t prefill_tiles(std::int64_t n_tokens, std::int64_t n_sequences,
                                  std::int32_t group) {
  return n_tokens * group / prefill_rows + n_sequences;
}

/// Prefill attention computes the sequences with several rows (tokens) in a step if (rows -
/// sequences) * KV heads is at least this number. A block of prefill attention goes through all
/// positions of its rows in order, so with few rows most of the GPU would be idle; decode attention
/// divides the positions among blocks.
inline constexpr std::int64_t prefill_enough_rows = 256;

/// Whether a step should use prefill attention for the sequences that have several rows (tokens) in
/// it. A row has the same bits with either kernel.
inline bool prefill_pays(const decode_heads& of, std::int64_t n_tokens, std::int64_t n_sequences) {
  return (n_tokens - n_sequences) * of.n_kv_heads >= prefill_enough_rows &&
         n_tokens * of.group() <= 0x7fffffff &&
         prefill_tiles(n_tokens, n_sequences, of.group()) * of.n_kv_heads <= decode_most_blocks;
}

} // namespace twill::gpu::cuda
