// The sizes of the prefill attention kernel and the layout of a block's shared memory.
// decode_shape.hpp explains chunks, sub-tiles, pieces and segments.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gpu/attention/cuda/decode_shape.hpp"

namespace twill::gpu::cuda {

/// The number of query rows per warp; a query row is a pair of a token and a query head. Each f32
/// query is split into two 16-bit parts: in operand A of mma the first parts are rows 0 to 7 and
/// the second parts rows 8 to 15.
inline constexpr int prefill_warp_rows = 8;
/// The number of positions in a chunk. A warp keeps the scores of its query rows for one chunk in
/// registers. Chunks are the same as in decode attention, counted from position 0.
inline constexpr int prefill_chunk = decode_chunk;

inline constexpr int prefill_warps = 6;
/// Query rows of a block.
inline constexpr int prefill_rows = prefill_warp_rows * prefill_warps;

/// A tile is the work of one block: prefill_rows query rows (pairs of a token and a query head) of
/// one sequence and KV head, or fewer at the end of the sequence. The function returns the number
/// of the first tile of sequence number `sequence`; `first` is the sequence's first row in the
/// batch, and `group` is the number of query heads per KV head. A sequence reserves as many tile
/// numbers as it needs, or one more, so that this simple formula gives its first number and the
/// host knows an upper bound of all numbers.
TWILL_KERNEL_FUNCTION std::int32_t prefill_tile_of(std::int32_t sequence, std::int32_t first,
                                                   std::int32_t group) {
  return first * group / prefill_rows + sequence;
}

/// Sizes for KV of type Element and Dim dimensions. Keys and values pass through buffers in shared
/// memory (slots). A slot holds either the keys of a sub-tile (32 positions, or 64 where KV is
/// int8) or 32 dimensions of the values of at least as many positions.
template <class Element, int Dim>
struct prefill_shape {
  static_assert(Dim % 16 == 0 && Dim >= 32 && Dim <= 128);
  static_assert(std::is_same_v<Element, kv_f16> || std::is_same_v<Element, kv_bf16> ||
                std::is_same_v<Element, kv_i8>);

  static constexpr int dim = Dim;
  static constexpr bool bf16 = std::is_same_v<Element, kv_bf16>;
  static constexpr bool scaled = kv_element<Element>::scaled;
  static constexpr int threads = 32 * prefill_warps;
  static constexpr int piece = 16 / static_cast<int>(sizeof(Element)); ///< elements of 16 bytes
  static constexpr int pieces = prefill_chunk / piece;                 ///< of a chunk's positions
  static constexpr int columns = piece / 8; ///< tiles of 8 columns of mma that a piece is
  static constexpr int key_segments = 4;    ///< pieces of a key's dimension in a sub-tile
  static constexpr int positions = key_segments * piece; ///< of a sub-tile
  static constexpr int sub_tiles = prefill_chunk / positions;

  static constexpr int slot_bytes = Dim * key_segments * 16;
  static constexpr int slots = 3;
  static constexpr int slice = 32; ///< dimensions of values in a slot
  static constexpr int slices = (Dim + slice - 1) / slice;
  static constexpr int value_segments = slice / piece; ///< pieces of a value in a slot
  /// Positions of values in a slot: a power of two.
  static constexpr int value_positions_of(int room) {
    int most = 32;
    while (2 * most <= room && most < prefill_chunk)
      most *= 2;
    return most;
  }
  static constexpr int value_positions = value_positions_of(slot_bytes / (value_segments * 16));
  static constexpr int value_tiles = prefill_chunk / value_positions;

  /// The number of sums of weighted values that a thread holds for one row and slice of 32
  /// dimensions. They are sums over the current chunk; the sums over all chunks are in shared
  /// memory, in f32.
  static constexpr int thread_sums = value_segments * columns * 2;
  static constexpr int total_bytes = slices * thread_sums * threads * 4;

  /// Bytes of the data that find_places() stores before the copies of a chunk begin: where the
  /// chunk's keys and values lie in the KV arena, and their scales. Shared memory has room for the
  /// data of two chunks.
  static constexpr int known_bytes = 8 * pieces + (scaled ? 8 * prefill_chunk : 0);
  static constexpr unsigned key_scales_at = 8 * pieces; ///< from a chunk's first byte
  static constexpr unsigned value_scales_at = key_scales_at + 4 * prefill_chunk;

  /// Whether threads keep their query operands in shared memory: with int8 KV, registers do not
  /// suffice.
  static constexpr bool keeps_queries = scaled;
  static constexpr int query_bytes = keeps_queries ? Dim * threads : 0;

  static constexpr unsigned totals_at = slots * slot_bytes;
  static constexpr unsigned queries_at = totals_at + total_bytes;
  static constexpr unsigned known_at = queries_at + query_bytes;
  /// Where shared memory holds the structs of prefill_work.hpp: at rows_at a kept_row for each
  /// query row of the block, and at block_at the block's kept_block. They are read once per chunk
  /// and lie in shared memory to save registers.
  static constexpr unsigned rows_at = known_at + 2 * known_bytes;
  static constexpr unsigned block_at = rows_at + 8 * prefill_rows;
  static constexpr int shared_bytes = block_at + 16;
};

} // namespace twill::gpu::cuda
