// prefill_staging: copies the keys and values of a prefill attention block to shared memory,
// through a ring of buffers (slots), several steps ahead and without a pause between chunks.
//
// A step of this kernel fills one slot. The steps of a chunk are its sub-tiles of keys (32 or 64
// positions each) and then, for each slice of 32 dimensions, its tiles of value_positions values.
// Warps take turns: one warp makes all copies of a step, which takes fewer instructions than if
// every warp copied a part of every step. Steps of which no row of the block sees a position are
// left out. In the remaining steps, positions that no row sees are filled with zeros, since their
// memory may hold anything.
#pragma once

#include <cstdint>

#include "gpu/attention/cuda/prefill_work.hpp"
#include "gpu/detail/kv_place.hpp"

namespace twill::gpu::cuda {

template <class Element, class Shape, class Ptx>
struct prefill_staging : prefill_work<Shape, Ptx> {
  using base = prefill_work<Shape, Ptx>;
  using base::args, base::column_of, base::lane, base::of_block, base::position_of, base::ptx,
      base::this_block, base::warp;
  using base::base;
  using typename base::kept_block;

  static constexpr int ahead = Shape::slots - 1;

  TWILL_KERNEL_MEMBER int first_chunk() const { return of_block.begin / prefill_chunk; }
  TWILL_KERNEL_MEMBER int last_chunk() const { return (of_block.end - 1) / prefill_chunk; }
  /// The positions of a chunk that the block sees, counted from the chunk's first position.
  TWILL_KERNEL_MEMBER position_range seen_in(int chunk) const {
    const int begin = of_block.begin - chunk * prefill_chunk;
    const int end = of_block.end - chunk * prefill_chunk;
    return {begin > 0 ? begin : 0, end < prefill_chunk ? end : prefill_chunk};
  }
  /// The shared-memory offset of a chunk's data (the places of its pieces, and its scales).
  TWILL_KERNEL_MEMBER static unsigned known_of(int chunk) {
    return Shape::known_at + static_cast<unsigned>(chunk) % 2 * Shape::known_bytes;
  }

  /// Begins the first copies. The block continues with begin_step() of the first step.
  TWILL_KERNEL_MEMBER void begin_steps() {
    steps_to_turn = warp();
    next_chunk = first_chunk();
    next_tile = seen_in(next_chunk).begin / Shape::positions;
    ptx.barrier(); // find_work() has stored what it found
    find_places(next_chunk);
    ptx.barrier();
    for (int i = 0; i < ahead; ++i)
      stage_next();
  }
  /// Waits for the copies of the current step and begins the copies of a later step. Returns the
  /// offset of the buffer in shared memory (slot) that the copies of the current step have filled.
  TWILL_KERNEL_MEMBER unsigned begin_step() {
    ptx.template wait<ahead - 1>();
    ptx.barrier(); // this step's copies are there, and the last step's slot is free
    stage_next();
    return next_slot; // the next step's copies take this step's slot
  }
  /// Finds where a chunk's keys and values lie in device memory, and reads their scales. A
  /// barrier() is needed between this call and the first copies of the chunk. Another barrier() is
  /// needed between the softmax of chunk - 2 and this call, since both chunks store their data at
  /// the same offset of shared memory.
  TWILL_KERNEL_MEMBER void find_places(int chunk) {
    if (chunk > last_chunk()) return;
    const kv_layer& kv = args.kv;
    const kept_block block = this_block();
    const std::int32_t* table = args.block_table + std::int64_t{block.sequence} * args.max_blocks;
    const position_range is_seen = seen_in(chunk);
    const unsigned known = known_of(chunk);
    static_assert(Shape::pieces <= Shape::threads);
    if (const int i = ptx.thread(); i < Shape::pieces) {
      piece_place place{};
      if (is_seen.meets(i * Shape::piece, (i + 1) * Shape::piece)) {
        const int position = chunk * prefill_chunk + i * Shape::piece;
        const int column = position / kv.block_tokens;
        const int offset = position - column * kv.block_tokens;
        place = piece_place::of(detail::block_at(kv, ptx.load(table + column)) +
                                    std::int64_t{block.kv_head} * kv.block_tokens * Shape::dim,
                                offset);
      }
      ptx.store_shared(known + static_cast<unsigned>(i) * 8, place);
    }
    if constexpr (Shape::scaled) {
      TWILL_UNROLL_TIMES(1)
      for (int i = ptx.thread(); i < prefill_chunk; i += Shape::threads) {
        float key = 0, value = 0;
        if (is_seen.meets(i, i + 1)) {
          const int position = chunk * prefill_chunk + i;
          const int column = position / kv.block_tokens;
          const std::int64_t at = detail::block_scales_at(kv, ptx.load(table + column)) +
                                  std::int64_t{block.kv_head} * kv.block_tokens +
                                  (position - column * kv.block_tokens);
          key = ptx.load(kv.key_scales + at);
          value = ptx.load(kv.value_scales + at);
        }
        const unsigned to_scale = known + static_cast<unsigned>(column_of(i)) * 4;
        ptx.store_shared(to_scale + Shape::key_scales_at, key);
        ptx.store_shared(to_scale + Shape::value_scales_at, value);
      }
    }
  }

private:
  /// The place in device memory of a piece (the 8 or 16 positions that 16 bytes of KV hold, see
  /// decode_shape.hpp): where its values begin in the arena, and the offset of its first position
  /// in its KV block. Both numbers are counted in pieces and share 64 bits, so that one load reads
  /// them for a copy.
  struct piece_place {
    std::int64_t bits;

    TWILL_KERNEL_MEMBER static piece_place of(std::int64_t head_at, int offset) {
      return {(head_at + std::int64_t{offset} * Shape::dim) / Shape::piece * 65536 +
              offset / Shape::piece};
    }
    /// Elements from the first value of the arena.
    TWILL_KERNEL_MEMBER std::int64_t value() const { return (bits >> 16) * Shape::piece; }
    /// Elements from the first key of the arena.
    TWILL_KERNEL_MEMBER std::int64_t key() const {
      return value() - (bits & 65535) * (Shape::piece * (Shape::dim - 1));
    }
  };
  /// What the next step copies of chunk next_chunk. If next_slice is negative, it copies sub-tile
  /// number next_tile of the keys. Otherwise it copies 32 dimensions (slice number next_slice) of
  /// tile number next_tile of the values.
  int next_chunk = 0, next_slice = -1, next_tile = 0;
  unsigned next_slot = 0;
  int steps_to_turn = 0; ///< steps until it is this warp's turn to copy

  TWILL_KERNEL_MEMBER void stage_next() {
    if (next_chunk <= last_chunk()) {
      const position_range is_seen = seen_in(next_chunk);
      if (steps_to_turn == 0) {
        if (next_slice < 0)
          stage_keys(is_seen);
        else
          stage_values(is_seen);
      }
      advance(is_seen);
    }
    steps_to_turn = steps_to_turn == 0 ? prefill_warps - 1 : steps_to_turn - 1;
    next_slot += Shape::slot_bytes;
    if (next_slot == Shape::slots * Shape::slot_bytes) next_slot = 0;
    ptx.commit();
    ptx.sync_warp(); // reconverges the warp for ldmatrix and mma, since some threads copy nothing
  }
  TWILL_KERNEL_MEMBER void advance(const position_range& is_seen) {
    ++next_tile;
    if (next_tile * (next_slice < 0 ? Shape::positions : Shape::value_positions) < is_seen.end)
      return;
    next_tile = is_seen.begin / Shape::value_positions;
    if (++next_slice < Shape::slices) return;
    ++next_chunk;
    next_slice = -1;
    next_tile = 0; // only the first chunk can begin with positions that are not seen
  }

  /// A thread copies the same piece of every eighth dimension's keys.
  TWILL_KERNEL_MEMBER void stage_keys(const position_range& is_seen) {
    constexpr int together = 32 / Shape::key_segments; // dimensions that are copied at once
    const int segment = lane() % Shape::key_segments;
    const int dim = lane() / Shape::key_segments;
    const int number = next_tile * Shape::key_segments + segment;
    const auto place = ptx.template load_shared<piece_place>(known_of(next_chunk) +
                                                             static_cast<unsigned>(number) * 8);
    const bool zeros = !is_seen.meets(number * Shape::piece, (number + 1) * Shape::piece);
    const std::int64_t step = args.kv.block_tokens; // from a dimension of a key to the next
    const Element* keys = static_cast<const Element*>(args.kv.keys) + place.key() + dim * step;
    const unsigned to = next_slot + swizzled<Shape::key_segments>(dim, segment);
    TWILL_UNROLL_TIMES(4)
    for (int d = 0; d < Shape::dim; d += together) {
      ptx.copy_async_or_zeros(to + static_cast<unsigned>(d * Shape::key_segments) * 16, keys,
                              zeros);
      keys += together * step;
    }
  }
  /// A thread copies the same segment of the value at the same place of each piece.
  TWILL_KERNEL_MEMBER void stage_values(const position_range& is_seen) {
    constexpr int segments = Shape::value_segments;
    static_assert(32 / segments == Shape::piece);
    const int column = lane() / segments;
    const int segment = lane() % segments;
    const int dimension = next_slice * Shape::slice + segment * Shape::piece;
    if (Shape::dim % Shape::slice != 0 && dimension >= Shape::dim) return;
    const int position = position_of(column); // in a piece
    const int tile_begin = next_tile * Shape::value_positions;
    const auto before = static_cast<unsigned>(tile_begin + position - is_seen.begin);
    const auto n_seen = static_cast<unsigned>(is_seen.end - is_seen.begin);
    const unsigned places =
        known_of(next_chunk) + static_cast<unsigned>(tile_begin) / Shape::piece * 8;
    const Element* values =
        static_cast<const Element*>(args.kv.values) + dimension + position * Shape::dim;
    const unsigned to = next_slot + swizzled<segments>(column, segment);
    TWILL_UNROLL_TIMES(1)
    for (int i = 0; i < Shape::value_positions; i += 4 * Shape::piece) {
      piece_place place[4];
      TWILL_UNROLL
      for (int j = 0; j < 4; ++j)
        place[j] = ptx.template load_shared<piece_place>(
            places + static_cast<unsigned>(i / Shape::piece + j) * 8);
      TWILL_UNROLL
      for (int j = 0; j < 4; ++j) {
        const int more = i + j * Shape::piece;
        ptx.copy_async_or_zeros(to + static_cast<unsigned>(more * segments) * 16,
                                values + place[j].value(),
                                before + static_cast<unsigned>(more) >= n_seen);
      }
    }
  }
};

} // namespace twill::gpu::cuda
