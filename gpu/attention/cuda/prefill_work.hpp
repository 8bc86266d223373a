// prefill_work: determines the query rows and positions of a prefill attention block and loads the
// queries of its warps.
#pragma once

#include <cstdint>

#include "gpu/attention/cuda/attention_output.hpp"
#include "gpu/attention/cuda/mma_pieces.hpp"
#include "gpu/attention/cuda/prefill_shape.hpp"
#include "gpu/attention/kv_layer.hpp"

namespace twill::gpu::cuda {

struct prefill_attention_args {
  const float* q;        // (n_tokens, n_heads, head_dim)
  std::int64_t q_stride; ///< elements
  attention_output out;
  kv_layer kv;        ///< with its strides spelled out
  std::int32_t group; ///< query heads of a KV head; n_tokens * group is an int
  std::int32_t n_sequences;
  std::int32_t tiles; ///< prefill_tiles() of the batch
  /// Sequences with fewer rows than this in the step are left out.
  std::int32_t least_rows;
  float scale;         ///< of the queries
  std::int32_t window; ///< 0: none
  const float* slopes; // (n_heads), or null
  std::int32_t max_blocks;
  const std::int32_t* positions;   // (n_tokens)
  const std::int32_t* first_token; // (n_sequences + 1)
  const std::int32_t* block_table; // (n_sequences, max_blocks)
};

/// Positions [begin, end).
struct position_range {
  std::int32_t begin = 0, end = 0;

  TWILL_KERNEL_MEMBER bool meets(int from, int to) const { return from < end && to > begin; }
};

/// The query rows of a sequence for one KV head are the pairs (row of the batch, query head of this
/// KV head), in this order. A block has up to prefill_rows query rows and a warp eight of them,
/// each of which is shared by four threads.
template <class Shape, class Ptx>
struct prefill_work : mma_pieces<Shape, Ptx> {
  using base = mma_pieces<Shape, Ptx>;
  using base::lane, base::larger, base::ptx, base::split, base::warp;

  const prefill_attention_args& args;

  TWILL_KERNEL_MEMBER prefill_work(Ptx of_thread, const prefill_attention_args& given)
      : base{{of_thread}}, args(given) {}

  position_range of_block; ///< positions that at least one row of the block sees
  bool is_idle = false;    ///< the warp has no rows

  /// Data of the block that is kept in shared memory.
  struct alignas(16) kept_block {
    std::int32_t first,
        n; ///< first query row of the block, counted over the whole batch, and their number
    std::int32_t kv_head, sequence;
  };
  /// A row of the batch and one of its heads.
  struct query_row {
    std::int32_t row, head;
    bool is_stored; ///< false past the block's last row: such rows repeat the last one
  };
  /// Data of a query row that is kept in shared memory.
  struct alignas(8) kept_row {
    std::int32_t end; ///< end of the positions that the row sees
    float back;       ///< factor for products with the query, which undoes its scaling
  };

  /// Finds the block's rows and positions. Returns false if the block has nothing to do.
  TWILL_KERNEL_MEMBER bool find_work() {
    // The last rows of a sequence see the most positions, so their blocks are started first.
    const int number = args.tiles - 1 - ptx.block() / args.kv.n_kv_heads;
    const int sequence = sequence_of(number);
    const int first = ptx.load(args.first_token + sequence);
    const int length = ptx.load(args.first_token + sequence + 1) - first;
    const int skipped = (number - prefill_tile_of(sequence, first, args.group)) * prefill_rows;
    if (length < args.least_rows || skipped >= length * args.group) return false;
    const int left = length * args.group - skipped;
    const kept_block block{first * args.group + skipped, left < prefill_rows ? left : prefill_rows,
                           ptx.block() % args.kv.n_kv_heads, sequence};
    if (ptx.thread() == 0) ptx.store_shared(Shape::block_at, block);
    find_block_range(block.first / args.group, (block.first + block.n - 1) / args.group);
    is_idle = prefill_warp_rows * warp() >= block.n;
    return true;
  }
  /// The block's data. It can be read after find_work() and a barrier().
  TWILL_KERNEL_MEMBER kept_block this_block() const {
    return ptx.template load_shared<kept_block>(Shape::block_at);
  }
  TWILL_KERNEL_MEMBER query_row this_row() const { return row_of(this_block()); }
  TWILL_KERNEL_MEMBER kept_row this_kept_row() const {
    return ptx.template load_shared<kept_row>(kept_at());
  }
  /// The positions that a row at position end - 1 sees.
  TWILL_KERNEL_MEMBER position_range range_before(int end) const {
    return {args.window > 0 && end > args.window ? end - args.window : 0, end};
  }

  /// Loads and scales the query of each query row of the warp and converts it to operands of mma.
  /// Stores each row's kept_row in shared memory.
  TWILL_KERNEL_MEMBER void load_queries(std::uint32_t (&query)[Shape::dim / 16][4]) {
    const query_row of = this_row();
    const float* from =
        args.q + std::int64_t{of.row} * args.q_stride + std::int64_t{of.head} * Shape::dim;
    float x[Shape::dim / 16][4];
    float largest = 0;
    TWILL_UNROLL
    for (int k = 0; k < Shape::dim / 16; ++k) {
      TWILL_UNROLL
      for (int i = 0; i < 4; ++i) {
        x[k][i] = ptx.load(from + 16 * k + 2 * (lane() % 4) + i / 2 * 8 + i % 2) * args.scale;
        largest = larger(largest, ::fabsf(x[k][i]));
      }
    }
    for (int mask = 2; mask > 0; mask /= 2)
      largest = larger(largest, ptx.shuffle_xor(largest, mask));
    const query_scale by = query_scale_of(largest);
    if (lane() % 4 == 0)
      ptx.store_shared(kept_at(), kept_row{ptx.load(args.positions + of.row) + 1, by.up});
    ptx.sync_warp();
    TWILL_UNROLL
    for (int k = 0; k < Shape::dim / 16; ++k) {
      TWILL_UNROLL
      for (int i = 0; i < 4; i += 2)
        split(x[k][i] * by.down, x[k][i + 1] * by.down, query[k][i], query[k][i + 1]);
    }
  }

private:
  TWILL_KERNEL_MEMBER unsigned kept_at() const {
    return Shape::rows_at + static_cast<unsigned>(prefill_warp_rows * warp() + lane() / 4) * 8;
  }
  TWILL_KERNEL_MEMBER query_row row_of(const kept_block& block) const {
    const int mine = prefill_warp_rows * warp() + lane() / 4;
    const bool is_stored = mine < block.n;
    const int taken = block.first + (is_stored ? mine : block.n - 1);
    return {taken / args.group, block.kv_head * args.group + taken % args.group, is_stored};
  }
  /// The sequence to which `tile` belongs: the last one whose first tile is not after it.
  TWILL_KERNEL_MEMBER int sequence_of(int tile) const {
    int before = 0;
    for (int s = lane(); s < args.n_sequences; s += 32)
      before += prefill_tile_of(s, ptx.load(args.first_token + s), args.group) <= tile;
    for (int mask = 16; mask > 0; mask /= 2)
      before += shuffled(before, mask);
    return before - 1;
  }
  TWILL_KERNEL_MEMBER void find_block_range(int first, int last) {
    position_range all{0x7fffffff, 0};
    for (int of_row = first + lane(); of_row <= last; of_row += 32) {
      const position_range one = range_before(ptx.load(args.positions + of_row) + 1);
      all.begin = one.begin < all.begin ? one.begin : all.begin;
      all.end = one.end > all.end ? one.end : all.end;
    }
    for (int mask = 16; mask > 0; mask /= 2) {
      const position_range other{shuffled(all.begin, mask), shuffled(all.end, mask)};
      all.begin = other.begin < all.begin ? other.begin : all.begin;
      all.end = other.end > all.end ? other.end : all.end;
    }
    of_block = all;
  }
  TWILL_KERNEL_MEMBER std::int32_t shuffled(std::int32_t x, int mask) const {
    const float bits = detail::bits_to_f32(static_cast<std::uint32_t>(x));
    return static_cast<std::int32_t>(detail::f32_to_bits(ptx.shuffle_xor(bits, mask)));
  }
};

} // namespace twill::gpu::cuda
