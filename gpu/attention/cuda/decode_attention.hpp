// The body of attention for one row of queries: a block has a row, a KV head, up to 16 of its query
// heads, and every `splits`-th chunk of 256 positions. It is written over Ptx (gpu/cuda/ptx.hpp):
// attention_cuda.cu makes kernels of it, tests emulate it.
//
// Scores and sums are products of mma: the heads are the rows of its A. Both f32 factors, queries
// and softmax weights, go in as two 16-bit parts whose products are added, the first in rows 0 to 7
// and the second in rows 8 to 15, so about 22 bits of a head's largest stay with f16 and int8 KV
// (codes are exact in f16), and 16 with bf16 KV. Softmax and sums are f32.
//
// A chunk's keys, then its values, pass through a ring of slots in shared memory, copied some
// sub-tiles ahead. Its softmax is taken over the whole chunk. A chunk's result depends on its own
// keys and values alone, and chunks are merged in their order, here or by combine_attention: a row
// has the same bits in any batch and with any number of splits.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/attention/cuda/attention_output.hpp"
#include "gpu/attention/cuda/decode_pieces.hpp"
#include "gpu/attention/cuda/decode_softmax.hpp"
#include "gpu/attention/cuda/merge_chunks.hpp"
#include "gpu/detail/kv_place.hpp"

namespace twill::gpu::cuda {

struct decode_attention_args {
  const float* q;        // (n_tokens, n_heads, head_dim)
  std::int64_t q_stride; ///< elements
  attention_output out;
  kv_layer kv;         ///< with its strides spelled out
  std::int32_t group;  ///< query heads of a KV head
  std::int32_t parts;  ///< blocks that share them
  std::int32_t splits; ///< blocks that share a row's chunks
  float scale;         ///< of the queries
  std::int32_t window; ///< 0: none
  const float* slopes; // (n_heads), or null
  std::int32_t max_blocks;
  const std::int32_t* positions;   // (n_tokens)
  const std::int32_t* sequence_of; // (n_tokens)
  const std::int32_t* block_table; // (n_sequences, max_blocks)
  chunk_results results;           ///< read by combine_attention; unused with one split
};

template <class Element, int Dim, int Tiles, class Ptx>
struct decode_attention : decode_pieces<decode_shape<Element, Dim, Tiles>, Ptx> {
  using shape = decode_shape<Element, Dim, Tiles>;
  using base = decode_pieces<shape, Ptx>;
  using base::column_of, base::columns, base::lane, base::larger, base::largest_of_16,
      base::load_rows, base::multiply_piece, base::position_of, base::ptx, base::shared_head,
      base::store_parts, base::warp;

  const decode_attention_args& args;

  /// The block's work.
  std::int64_t row = 0;
  int kv_head = 0, head = 0, heads = 0; ///< `head` is its first query head, of `heads`
  int begin = 0, end = 0;               ///< the row sees positions [begin, end)
  const std::int32_t* table = nullptr;  ///< of its sequence's blocks
  /// A chunk, of which positions [from, to) are seen, in sub-tiles [first, first + n).
  int chunk_begin = 0, from = 0, to = 0, first = 0, n = 0;
  /// What this thread copies of keys.
  int key_segment = 0, key_dim = 0;

  using accumulators = float[Tiles][shape::warp_segments][columns][4];
  using totals = float[Tiles][shape::warp_segments][columns][2];

  /// Scales the queries so that a head's largest lies in [1, 2), and stores their two parts.
  TWILL_KERNEL_MEMBER void load_queries() {
    TWILL_UNROLL
    for (int tile = 0; tile < Tiles; ++tile) {
      const int h = tile * decode_tile_heads + shared_head();
      const bool is_one = h < heads;
      const float* from_q = args.q + row * args.q_stride + std::int64_t{head + h} * Dim;
      float x[Dim / 16];
      float largest = 0;
      TWILL_UNROLL
      for (int i = 0; i < Dim / 16; ++i) {
        x[i] = is_one ? ptx.load(from_q + lane() % 16 + 16 * i) * args.scale : 0.0f;
        largest = larger(largest, ::fabsf(x[i]));
      }
      largest = largest_of_16(largest);
      const std::uint32_t exponent = detail::f32_to_bits(largest) & 0x7f800000U;
      const bool scales = exponent != 0 && exponent < 253U << 23;
      const float down = scales ? detail::bits_to_f32((254U << 23) - exponent) : 1.0f;
      TWILL_UNROLL
      for (int i = 0; i < Dim / 16; ++i) {
        const unsigned at = shape::query_at +
                            static_cast<unsigned>((tile * 16 + shared_head()) * shape::query_pitch +
                                                  (lane() % 16 + 16 * i) * 2);
        store_parts(at, 8 * shape::query_pitch, x[i] * down);
      }
      if (lane() % 16 == 0)
        ptx.store_shared(shape::factors_at + static_cast<unsigned>(h) * 4,
                         scales ? detail::bits_to_f32(exponent) : 1.0f);
    }
  }
  TWILL_KERNEL_MEMBER bool is_seen(int position) const { return position >= from && position < to; }
  TWILL_KERNEL_MEMBER bool is_piece_seen(int number) const {
    return number * shape::piece < to && (number + 1) * shape::piece > from;
  }

  /// Finds the block of each piece of the chunk's positions, and reads the scales.
  TWILL_KERNEL_MEMBER void find_places() {
    const kv_layer& kv = args.kv;
    float largest = 0; // of the value scales
    if constexpr (shape::scaled)
      for (int i = ptx.thread(); i < decode_chunk; i += decode_threads) {
        float key = 0, value = 0;
        if (is_seen(i)) {
          const int column = (chunk_begin + i) / kv.block_tokens;
          const std::int64_t at = detail::block_scales_at(kv, ptx.load(table + column)) +
                                  std::int64_t{kv_head} * kv.block_tokens +
                                  (chunk_begin + i - column * kv.block_tokens);
          key = ptx.load(kv.key_scales + at);
          value = ptx.load(kv.value_scales + at);
        }
        const unsigned to_scale = static_cast<unsigned>(column_of(i)) * 4;
        ptx.store_shared(shape::key_scales_at + to_scale, key);
        ptx.store_shared(shape::value_scales_at + to_scale, value);
        largest = larger(largest, value);
      }
    if (ptx.thread() < shape::pieces) {
      std::int64_t key = 0, value = 0;
      if (is_piece_seen(ptx.thread())) {
        const int position = chunk_begin + ptx.thread() * shape::piece;
        const int column = position / kv.block_tokens;
        const int offset = position - column * kv.block_tokens;
        const std::int64_t at = detail::block_at(kv, ptx.load(table + column)) +
                                std::int64_t{kv_head} * kv.block_tokens * Dim;
        key = at + offset;
        value = at + std::int64_t{offset} * Dim;
      }
      ptx.store_shared(shape::key_places_at + static_cast<unsigned>(ptx.thread()) * 8, key);
      ptx.store_shared(shape::value_places_at + static_cast<unsigned>(ptx.thread()) * 8, value);
    }
    if constexpr (shape::scaled) {
      largest = largest_of_16(larger(largest, ptx.shuffle_xor(largest, 16)));
      if (lane() == 0)
        ptx.store_shared(shape::largest_at + static_cast<unsigned>(warp()) * 4, largest);
    }
  }
  TWILL_KERNEL_MEMBER static unsigned slot_of(int step) {
    return static_cast<unsigned>(step % shape::slots * shape::slot_bytes);
  }

  /// Begins to copy what step `step` of the chunk takes: keys in steps [0, n), then values.
  TWILL_KERNEL_MEMBER void stage(int step) {
    if (step < n)
      stage_keys(first + step, slot_of(step));
    else if (step < 2 * n)
      stage_values(first + step - n, slot_of(step));
    ptx.commit();
    ptx.sync_warp(); // some threads copy nothing; ldmatrix and mma want a warp together
  }
  TWILL_KERNEL_MEMBER void stage_keys(int sub_tile, unsigned slot) {
    const int number = sub_tile * shape::key_segments + key_segment;
    const auto at = ptx.template load_shared<std::int64_t>(shape::key_places_at +
                                                           static_cast<unsigned>(number) * 8);
    if (!is_piece_seen(number)) return;
    const std::int64_t step = args.kv.block_tokens; // from a dimension of a key to the next
    const Element* keys = static_cast<const Element*>(args.kv.keys) + at + key_dim * step;
    const unsigned to = slot + swizzled<shape::key_segments>(key_dim, key_segment);
    TWILL_UNROLL
    for (int d = 0; d < Dim; d += 32)
      if (Dim % 32 == 0 || d + key_dim < Dim)
        ptx.copy_async(to + d * shape::key_segments * 16, keys + d * step);
  }
  /// A thread copies one segment of each value, or two, of every `rows`-th column. Zeros take
  /// the place of values that the row does not see, which may be anything.
  TWILL_KERNEL_MEMBER void stage_values(int sub_tile, unsigned slot) {
    constexpr int segments = shape::value_segments;
    constexpr int side = segments <= 4 ? 4 : segments <= 8 ? 8 : 16; // threads of a value
    constexpr int rows = decode_threads / side;
    constexpr int passes = shape::positions / rows;
    const int column = ptx.thread() / side;
    const int segment = ptx.thread() % side;
    if (segments < side && segment >= segments) return;
    std::int64_t at[passes];
    TWILL_UNROLL
    for (int i = 0; i < passes; ++i)
      at[i] = ptx.template load_shared<std::int64_t>(
          shape::value_places_at + static_cast<unsigned>(sub_tile * shape::key_segments +
                                                         (column + i * rows) / shape::piece) *
                                       8);
    const Element* values = static_cast<const Element*>(args.kv.values) + segment * shape::piece;
    const unsigned to = slot + swizzled<segments>(column, segment);
    TWILL_UNROLL
    for (int i = 0; i < passes; ++i) {
      const int position = sub_tile * shape::positions + position_of(column + i * rows);
      TWILL_UNROLL
      for (int more = 0; more < segments; more += side) {
        const unsigned to_slot = to + static_cast<unsigned>(i * rows * segments + more) * 16;
        ptx.copy_async_or_zeros(
            to_slot, values + at[i] + position % shape::piece * Dim + more * shape::piece,
            !is_seen(position));
      }
    }
  }

  /// The scores of a sub-tile's positions: each warp has a piece of them.
  TWILL_KERNEL_MEMBER void multiply_keys(int sub_tile, unsigned slot) {
    const int number = sub_tile * shape::key_segments + warp();
    float d[Tiles][columns][4] = {};
    const bool seen = is_piece_seen(number);
    if (seen) {
      TWILL_UNROLL
      for (int k = 0; k < Dim; k += 32) {
        const bool half = k + 16 == Dim;
        std::uint32_t b[4], a[4];
        const int dim = half ? lane() % 16 : lane();
        ptx.template load_matrices<true>(b, slot + swizzled<shape::key_segments>(dim, warp()) +
                                                k * shape::key_segments * 16);
        TWILL_UNROLL
        for (int tile = 0; tile < Tiles; ++tile) {
          const unsigned at = shape::query_at + tile * 16 * shape::query_pitch;
          load_rows(a, at, shape::query_pitch, k);
          multiply_piece(d[tile], a, b[0], b[1]);
          if (half) continue;
          load_rows(a, at, shape::query_pitch, k + 16);
          multiply_piece(d[tile], a, b[2], b[3]);
        }
      }
    }
    TWILL_UNROLL
    for (int tile = 0; tile < Tiles; ++tile) {
      TWILL_UNROLL
      for (int c = 0; c < columns; ++c)
        store_scores(tile, number * shape::piece + 8 * c + 2 * (lane() % 4), d[tile][c], seen);
    }
  }
  /// Two neighbouring columns of head lane / 4 of a tile.
  TWILL_KERNEL_MEMBER void store_scores(int tile, int column, const float (&d)[4], bool seen) {
    const int h = tile * decode_tile_heads + lane() / 4;
    floats2 both;
    TWILL_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int position = position_of(column + i);
      float score = (d[i] + d[i + 2]) * ptx.template load_shared<float>(
                                            shape::factors_at + static_cast<unsigned>(h) * 4);
      if constexpr (shape::scaled)
        score *= ptx.template load_shared<float>(shape::key_scales_at +
                                                 static_cast<unsigned>(column + i) * 4);
      if (args.slopes != nullptr && h < heads)
        score += ptx.load(args.slopes + head + h) *
                 static_cast<float>(chunk_begin + position - (end - 1));
      both.value[i] = seen && is_seen(position) ? score : -INFINITY;
    }
    ptx.store_shared(shape::weights_at +
                         static_cast<unsigned>(tile * shape::weight_bytes +
                                               lane() / 4 * shape::score_pitch + column * 4),
                     both);
  }

  TWILL_KERNEL_MEMBER decode_softmax<shape, Ptx> softmax() const {
    return {{ptx}, first, first + n};
  }

  /// Whether values have the segment warp() + 4j.
  TWILL_KERNEL_MEMBER static bool is_segment(int segment) {
    return shape::value_segments % shape::warps == 0 || segment < shape::value_segments;
  }

  /// Adds a sub-tile's weighted values: each warp has every fourth piece of the dimensions.
  TWILL_KERNEL_MEMBER void multiply_values(int sub_tile, unsigned slot, accumulators& sum) {
    TWILL_UNROLL
    for (int k = 0; k < shape::positions; k += 32) {
      std::uint32_t a[Tiles][2][4];
      TWILL_UNROLL
      for (int tile = 0; tile < Tiles; ++tile)
        for (int half = 0; half < 2; ++half)
          load_rows(a[tile][half], shape::weights_at + tile * shape::weight_bytes,
                    shape::weight_pitch, sub_tile * shape::positions + k + 16 * half);
      TWILL_UNROLL
      for (int j = 0; j < shape::warp_segments; ++j) {
        const int segment = warp() + shape::warps * j;
        if (!is_segment(segment)) break;
        std::uint32_t b[4];
        // Segments 8 apart lie 8 places apart.
        ptx.template load_matrices<true>(
            b, slot + swizzled<shape::value_segments>(lane(), warp() + shape::warps * (j % 2)) +
                   (k * shape::value_segments + j / 2 * 2 * shape::warps) * 16);
        TWILL_UNROLL
        for (int tile = 0; tile < Tiles; ++tile) {
          multiply_piece(sum[tile][j], a[tile][0], b[0], b[1]);
          multiply_piece(sum[tile][j], a[tile][1], b[2], b[3]);
        }
      }
    }
  }

  /// Attends to the positions of one chunk. The largest score and the sum of the weights of each
  /// head are then at tops_at, its sums in `sum`.
  /// The block's first chunk also loads the queries, while its first copies are under way.
  TWILL_KERNEL_MEMBER void attend(int chunk, bool is_first, accumulators& sum) {
    chunk_begin = chunk * decode_chunk;
    from = begin > chunk_begin ? begin - chunk_begin : 0;
    to = end - chunk_begin < decode_chunk ? end - chunk_begin : decode_chunk;
    first = from / shape::positions;
    n = (to + shape::positions - 1) / shape::positions - first;
    ptx.barrier(); // the last chunk's shared memory has been read
    find_places();
    ptx.barrier();
    constexpr int ahead = shape::slots - 1;
    for (int step = 0; step < ahead; ++step)
      stage(step);
    if (is_first) load_queries();
    for (int step = 0; step < 2 * n; ++step) {
      ptx.template wait<ahead - 1>();
      ptx.barrier(); // this step's copies are there, and the last step's slot is free
      stage(step + ahead);
      if (step < n)
        multiply_keys(first + step, slot_of(step));
      else
        multiply_values(first + step - n, slot_of(step), sum);
      if (step != n - 1) continue;
      ptx.barrier(); // the scores are there
      for (int tile = 0; tile < Tiles; ++tile)
        softmax().take(tile);
    }
    ptx.template wait<0>(); // of groups without copies
  }

  /// Calls f(tile, j, c, i, dimension) for the sums of values that this thread has.
  template <class F>
  TWILL_KERNEL_MEMBER void for_sums(const F& f) const {
    TWILL_UNROLL
    for (int tile = 0; tile < Tiles; ++tile) {
      TWILL_UNROLL
      for (int j = 0; j < shape::warp_segments; ++j) {
        const int segment = warp() + shape::warps * j;
        if (!is_segment(segment)) break;
        TWILL_UNROLL
        for (int k = 0; k < 2 * columns; ++k) {
          const int c = k / 2;
          const int i = k % 2;
          f(tile, j, c, i, segment * shape::piece + (2 * (lane() % 4) + i) * columns + c);
        }
      }
    }
  }
  /// What sums of values are to be multiplied by.
  TWILL_KERNEL_MEMBER float value_scale() const {
    if constexpr (shape::scaled) return softmax().largest_value_scale();
    return 1;
  }

  TWILL_KERNEL_MEMBER floats2 top_and_sum(int tile) const {
    return ptx.template load_shared<floats2>(
        shape::tops_at + static_cast<unsigned>(tile * decode_tile_heads + lane() / 4) * 8);
  }
  /// Whether the thread's row of a tile is one of the block's heads.
  TWILL_KERNEL_MEMBER bool has_head(int tile) const {
    return tile * decode_tile_heads + lane() / 4 < heads;
  }
  TWILL_KERNEL_MEMBER int head_of(int tile) const {
    return head + tile * decode_tile_heads + lane() / 4;
  }

  /// Stores a chunk's result for combine_attention. `number` counts from the row's first chunk.
  TWILL_KERNEL_MEMBER void store_chunk(int number, const accumulators& sum) const {
    const chunk_results& results = args.results;
    TWILL_UNROLL
    for (int tile = 0; tile < Tiles; ++tile)
      if (has_head(tile) && ptx.thread() < 32 && lane() % 4 == 0) {
        const std::int64_t place = results.place(row, head_of(tile), number);
        const floats2 top = top_and_sum(tile);
        ptx.store(results.tops + place, top.value[0]);
        ptx.store(results.weights + place, top.value[1]);
      }
    const float scale = value_scale();
    for_sums([&](int tile, int j, int c, int i, int dim) {
      const float(&d)[4] = sum[tile][j][c];
      if (has_head(tile))
        ptx.store(results.sums + results.place(row, head_of(tile), number) * Dim + dim,
                  (d[i] + d[i + 2]) * scale);
    });
  }

  TWILL_KERNEL_MEMBER void run() {
    find_work();
    const int first_chunk = begin / decode_chunk;
    const int last_chunk = (end - 1) / decode_chunk;
    const int mine = ptx.block() / args.parts % args.splits;
    if (first_chunk + mine > last_chunk) return;
    merged_chunks merged[Tiles];
    totals total = {};
    for (int number = mine; first_chunk + number <= last_chunk; number += args.splits) {
      accumulators sum = {};
      attend(first_chunk + number, number == mine, sum);
      if (args.splits > 1)
        store_chunk(number, sum);
      else
        merge_chunk(sum, merged, total);
    }
    if (args.splits == 1) store_output(merged, total);
  }

  TWILL_KERNEL_MEMBER void find_work() {
    const int item = ptx.block() / args.parts / args.splits;
    row = item / args.kv.n_kv_heads;
    kv_head = item % args.kv.n_kv_heads;
    const int skipped = ptx.block() % args.parts * shape::heads;
    head = kv_head * args.group + skipped;
    heads = args.group - skipped < shape::heads ? args.group - skipped : shape::heads;
    table = args.block_table + std::int64_t{ptx.load(args.sequence_of + row)} * args.max_blocks;
    end = ptx.load(args.positions + row) + 1;
    begin = args.window > 0 && end > args.window ? end - args.window : 0;
    // Threads with neighbouring numbers copy from neighbouring places.
    int together = 1;
    while (together < shape::key_segments &&
           args.kv.block_tokens % (2 * together * shape::piece) == 0)
      together *= 2;
    key_segment = ptx.thread() / (32 * together) * together + ptx.thread() % together;
    key_dim = ptx.thread() / together % 32;
  }

  TWILL_KERNEL_MEMBER void merge_chunk(const accumulators& sum, merged_chunks (&merged)[Tiles],
                                       totals& total) const {
    TWILL_UNROLL
    for (int tile = 0; tile < Tiles; ++tile) {
      const floats2 top = top_and_sum(tile);
      merged[tile].add(top.value[0], top.value[1]);
    }
    const float scale = value_scale();
    for_sums([&](int tile, int j, int c, int i, int) {
      const float(&d)[4] = sum[tile][j][c];
      float& to = total[tile][j][c][i];
      to = merged[tile].merge(to, (d[i] + d[i + 2]) * scale);
    });
  }

  TWILL_KERNEL_MEMBER void store_output(const merged_chunks (&merged)[Tiles],
                                        const totals& total) const {
    for_sums([&](int tile, int j, int c, int i, int dim) {
      if (has_head(tile))
        args.out.store(ptx, row, std::int64_t{head_of(tile)} * Dim + dim,
                       total[tile][j][c][i] / merged[tile].sum);
    });
  }
};

} // namespace twill::gpu::cuda
