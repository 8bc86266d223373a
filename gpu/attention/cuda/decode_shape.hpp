// The sizes of the decode attention kernel and the layout of a block's shared memory.
//
// The positions of a sequence are divided into chunks of 256, a chunk into sub-tiles, and a
// sub-tile into four pieces. A piece of positions is as many as 16 bytes of KV hold: 4 with f32, 8
// with a 16-bit type, 16 with int8. A key's dimensions lie apart in memory (kv_layer.hpp), so a
// copy of 16 bytes takes one dimension of the keys of a piece. A value is also copied by pieces of
// 16 bytes, each of which holds neighbouring dimensions. In shared memory such a copy is a segment
// of its row: a row holds one dimension of a sub-tile's keys, or one position's value.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gpu/attention/kv_element.hpp"
#include "gpu/detail/half.hpp"

namespace twill::gpu::cuda {

inline constexpr int decode_threads = 128;
/// The number of positions in a chunk. A block computes one partial result per chunk. Chunks are
/// counted from position 0 of the sequence.
inline constexpr int decode_chunk = 256;
/// The number of query heads in a tile. Each f32 query is split into two 16-bit parts: in operand A
/// of mma the first parts are rows 0 to 7 and the second parts rows 8 to 15.
inline constexpr int decode_tile_heads = 8;

/// The offset in shared memory of the 16 bytes with number `segment` of row `row`, where a row
/// consists of Segments times 16 bytes (segments). Segments with the same number in rows 8i to 8i +
/// 7 lie in different banks of shared memory.
template <int Segments>
TWILL_KERNEL_FUNCTION unsigned swizzled(int row, int segment) {
  constexpr int lowest = Segments & -Segments;
  constexpr int turns = lowest < 8 ? lowest : 8;
  const int turn = row / (8 / turns) % turns;
  // The number that is XORed into the segment's number is `turn` with its bits reversed. This moves
  // neighbouring rows far apart, so that copies of rows with few segments (16 bytes each) have no
  // bank conflicts either.
  int by = 0;
  if constexpr (turns == 8) by = (turn & 1) << 2 | (turn & 2) | turn >> 2;
  if constexpr (turns == 4) by = (turn & 1) << 1 | turn >> 1;
  if constexpr (turns == 2) by = turn;
  return static_cast<unsigned>(row * Segments + (segment ^ by)) * 16;
}

/// Sizes for KV of type Element and blocks that compute Tiles tiles of eight query heads. Keys and
/// values pass through buffers in shared memory (slots); a slot holds the keys or the values of one
/// sub-tile. Each of the block's four warps computes the scores of one quarter of the sub-tile's
/// positions, a piece.
template <class Element, int Dim, int Tiles>
struct decode_shape {
  static_assert(Dim % 16 == 0 && Dim >= 32 && Dim <= 256 && (Tiles == 1 || Tiles == 2));
  static_assert(std::is_same_v<Element, float> || std::is_same_v<Element, kv_f16> ||
                std::is_same_v<Element, kv_bf16> || std::is_same_v<Element, kv_i8>);

  static constexpr int dim = Dim;
  static constexpr int tiles = Tiles;
  static constexpr bool f32 = std::is_same_v<Element, float>; ///< multiplied without mma
  static constexpr bool bf16 = std::is_same_v<Element, kv_bf16>;
  static constexpr bool scaled = kv_element<Element>::scaled;
  static constexpr int heads = Tiles * decode_tile_heads; ///< of a block
  static constexpr int warps = decode_threads / 32;
  static constexpr int piece = 16 / static_cast<int>(sizeof(Element)); ///< elements of 16 bytes
  static constexpr int pieces = decode_chunk / piece;                  ///< of a chunk's positions
  static constexpr int columns = piece / 8; ///< tiles of 8 columns of mma that a piece is
  static constexpr int key_segments = 4;    ///< pieces of a key's dimension in a sub-tile
  static constexpr int positions = key_segments * piece; ///< of a sub-tile
  static constexpr int sub_tiles = decode_chunk / positions;
  static constexpr int value_segments = Dim / piece; ///< pieces of a value

  static constexpr int slot_bytes = Dim * key_segments * 16; ///< a sub-tile's keys, or its values
  static constexpr int slots = 32 * 1024 / slot_bytes < 3 ? 3 : 32 * 1024 / slot_bytes;
  // The queries and softmax weights of a tile (eight query heads) are stored as rows of f32 or, for
  // mma, as twice as many rows of 16-bit parts; the scores are always f32. Rows are padded, so that
  // the simultaneous accesses of a warp have no bank conflicts.
  static constexpr int query_pitch = Dim * (f32 ? 4 : 2) + 16; ///< bytes
  static constexpr int query_bytes = decode_tile_heads * (f32 ? 1 : 2) * query_pitch;
  static constexpr int score_pitch = (decode_chunk + (f32 ? 4 : 8)) * 4;
  static constexpr int weight_pitch = f32 ? score_pitch : decode_chunk * 2 + 16;
  static constexpr int weight_bytes = decode_tile_heads * score_pitch;
  static_assert(f32 || weight_bytes == decode_tile_heads * 2 * weight_pitch);

  static constexpr unsigned query_at = slots * slot_bytes;
  static constexpr unsigned weights_at = query_at + Tiles * query_bytes; ///< and the scores
  static constexpr unsigned key_places_at = weights_at + Tiles * weight_bytes;
  static constexpr unsigned value_places_at = key_places_at + 8 * pieces;
  static constexpr unsigned factors_at = value_places_at + 8 * pieces;
  static constexpr unsigned tops_at = factors_at + 4 * heads;
  static constexpr unsigned key_scales_at = tops_at + 8 * heads;
  static constexpr unsigned value_scales_at = key_scales_at + (scaled ? 4 * decode_chunk : 0);
  static constexpr unsigned largest_at = value_scales_at + (scaled ? 4 * decode_chunk : 0);
  static constexpr int shared_bytes = largest_at + (scaled ? 4 * warps : 0);
};

} // namespace twill::gpu::cuda
