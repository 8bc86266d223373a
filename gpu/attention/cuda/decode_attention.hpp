// decode_attention: the code of the attention kernel that computes each row (the queries of one
// token) by itself. A block computes one row, one KV head, up to 16 of its query heads, and every
// `splits`-th chunk of 256 positions. The code is a template over Ptx (gpu/cuda/ptx.hpp):
// attention_cuda.cu instantiates it as CUDA kernels, and tests run it on an emulation of a GPU.
//
// decode_mma computes the products, or decode_fma where KV is f32. Softmax and sums are f32.
//
// decode_shape.hpp explains how a chunk is divided into sub-tiles and pieces. A chunk's keys, then
// its values, pass through a ring of buffers (slots) in shared memory and are copied several
// sub-tiles ahead. Softmax is computed over a whole chunk at once. A chunk's result depends only on
// its own keys and values, and chunks are merged in order, either in this kernel or by
// combine_attention. So a row has the same bits in any batch and with any number of splits.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "gpu/attention/cuda/attention_output.hpp"
#include "gpu/attention/cuda/decode_fma.hpp"
#include "gpu/attention/cuda/decode_mma.hpp"
#include "gpu/attention/cuda/decode_softmax.hpp"
#include "gpu/attention/cuda/merge_chunks.hpp"
#include "gpu/detail/kv_place.hpp"

namespace twill::gpu::cuda {

struct decode_attention_args {
  const float* q;        // (n_tokens, n_heads, head_dim)
  std::int64_t q_stride; ///< elements
  attention_output out;
  kv_layer kv;         ///< strides of 0 replaced: see checked_kv()
  std::int32_t group;  ///< query heads of a KV head
  std::int32_t parts;  ///< blocks that share the query heads of a KV head
  std::int32_t splits; ///< blocks that share a row's chunks
  float scale;         ///< of the queries
  std::int32_t window; ///< 0: none
  const float* slopes; // (n_heads), or null
  std::int32_t max_blocks;
  const std::int32_t* positions;   // (n_tokens)
  const std::int32_t* sequence_of; // (n_tokens)
  const std::int32_t* first_token; // see decode_row()
  const std::int32_t* block_table; // (n_sequences, max_blocks)
  chunk_results results;           ///< read by combine_attention; unused with one split
};

template <class Shape, class Ptx>
using decode_products =
    std::conditional_t<Shape::f32, decode_fma<Shape, Ptx>, decode_mma<Shape, Ptx>>;

template <class Element, int Dim, int Tiles, class Ptx>
struct decode_attention : decode_products<decode_shape<Element, Dim, Tiles>, Ptx> {
  using shape = decode_shape<Element, Dim, Tiles>;
  using base = decode_products<shape, Ptx>;
  using base::column_of, base::dimension_of, base::has_sum, base::head_of, base::lane, base::larger,
      base::largest_of_16, base::multiply_keys, base::multiply_values, base::position_of, base::ptx,
      base::shared_head, base::store_query, base::sum_of, base::thread_heads, base::thread_sums,
      base::warp, base::with_alibi;
  using typename base::accumulators;

  const decode_attention_args& args;

  /// The block's work: a row, whose number in the launch is `number`.
  std::int64_t row = 0, number = 0;
  int kv_head = 0, head = 0, heads = 0; ///< `head` is its first query head, of `heads`
  int begin = 0, end = 0;               ///< the row sees positions [begin, end)
  const std::int32_t* table = nullptr;  ///< of its sequence's blocks
  /// The current chunk begins at position `chunk_begin`. Of this chunk the row sees the positions
  /// [from, to), where `from` and `to` are counted from `chunk_begin`. They lie in sub-tiles
  /// [first, first + n) of the chunk (decode_shape.hpp).
  int chunk_begin = 0, from = 0, to = 0, first = 0, n = 0;
  /// The piece and the dimension of keys that this thread copies.
  int key_segment = 0, key_dim = 0;

  using totals = float[thread_heads][thread_sums];

  /// Scales the queries by args.scale and stores them. For mma each head's query is also scaled by
  /// a power of two that brings its largest magnitude into [1, 2); the factor that undoes this in
  /// the products is stored in shared memory at factors_at.
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
      const query_scale by = shape::f32 ? query_scale{1, 1} : query_scale_of(largest);
      TWILL_UNROLL
      for (int i = 0; i < Dim / 16; ++i)
        store_query(h, lane() % 16 + 16 * i, x[i] * by.down);
      if (lane() % 16 == 0)
        ptx.store_shared(shape::factors_at + static_cast<unsigned>(h) * 4, by.up);
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

  /// Begins the copies for step `step` of the chunk: keys in steps [0, n), then values.
  TWILL_KERNEL_MEMBER void stage(int step) {
    if (step < n)
      stage_keys(first + step, slot_of(step));
    else if (step < 2 * n)
      stage_values(first + step - n, slot_of(step));
    ptx.commit();
    ptx.sync_warp(); // reconverges the warp for ldmatrix and mma, since some threads copy nothing
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
  /// Copies the values of a sub-tile's positions to a slot. `side` threads share the value of one
  /// position, and each of them copies every `side`-th 16 bytes of it. A thread does so for every
  /// `rows`-th column of the sub-tile; a column is the place of a position in the order of
  /// decode_pieces.hpp. Values of positions that the query must not see are replaced by zeros,
  /// since their memory may hold anything.
  TWILL_KERNEL_MEMBER void stage_values(int sub_tile, unsigned slot) {
    constexpr int segments = shape::value_segments;
    constexpr int side = segments <= 4 ? 4 : segments <= 8 ? 8 : 16; // threads of a value
    constexpr int rows = decode_threads / side;
    constexpr int passes = shape::positions / rows;
    const int column = ptx.thread() / side;
    const int segment = ptx.thread() % side;
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
    for (int more = 0; more < segments; more += side) {
      if (segments % side != 0 && segment + more >= segments) break;
      TWILL_UNROLL
      for (int i = 0; i < passes; ++i) {
        const int position = sub_tile * shape::positions + position_of(column + i * rows);
        const unsigned to_slot = to + static_cast<unsigned>(i * rows * segments + more) * 16;
        ptx.copy_async_or_zeros(
            to_slot, values + at[i] + position % shape::piece * Dim + more * shape::piece,
            !is_seen(position));
      }
    }
  }

  /// Computes the scores of a sub-tile's positions; each warp computes one piece of positions.
  TWILL_KERNEL_MEMBER void make_scores(int sub_tile, unsigned slot) {
    const int number = sub_tile * shape::key_segments + warp();
    multiply_keys(slot, number * shape::piece, is_piece_seen(number),
                  [&](int h, int column, float product) { return score_of(h, column, product); });
  }
  /// The score of head `h` of the block for a column, from the scalar product `product`.
  TWILL_KERNEL_MEMBER float score_of(int h, int column, float product) const {
    const int position = position_of(column);
    float score =
        product * ptx.template load_shared<float>(shape::factors_at + static_cast<unsigned>(h) * 4);
    if constexpr (shape::scaled)
      score *=
          ptx.template load_shared<float>(shape::key_scales_at + static_cast<unsigned>(column) * 4);
    if (args.slopes != nullptr && h < heads)
      score = with_alibi(score, ptx.load(args.slopes + head + h), chunk_begin + position, end);
    return is_seen(position) ? score : -INFINITY;
  }

  TWILL_KERNEL_MEMBER decode_softmax<shape, Ptx> softmax() const {
    return {{ptx}, first, first + n};
  }

  /// Attends to the 256 positions of one chunk, as far as the row sees them. Afterwards the largest
  /// score and the sum of weights of each head are in shared memory at tops_at, and the sums of
  /// weighted values in `sum`. In the block's first chunk the queries are loaded too, while the
  /// first copies are under way.
  TWILL_KERNEL_MEMBER void attend(int chunk, bool is_first, accumulators& sum) {
    chunk_begin = chunk * decode_chunk;
    from = begin > chunk_begin ? begin - chunk_begin : 0;
    to = end - chunk_begin < decode_chunk ? end - chunk_begin : decode_chunk;
    first = from / shape::positions;
    n = (to + shape::positions - 1) / shape::positions - first;
    ptx.barrier(); // all threads have read the last chunk's shared memory
    find_places();
    ptx.barrier();
    constexpr int ahead = shape::slots - 1;
    for (int step = 0; step < ahead; ++step)
      stage(step);
    if (is_first) load_queries();
    for (int step = 0; step < 2 * n; ++step) {
      ptx.template wait<ahead - 1>();
      ptx.barrier(); // this step's copies are complete, and the last step's slot is free
      stage(step + ahead);
      if (step < n)
        make_scores(first + step, slot_of(step));
      else
        multiply_values(first + step - n, slot_of(step), sum);
      if (step != n - 1) continue;
      ptx.barrier(); // the scores are there
      for (int tile = 0; tile < Tiles; ++tile)
        softmax().take(tile);
    }
    ptx.template wait<0>(); // of groups without copies
  }

  /// The factor by which sums of values must be multiplied.
  TWILL_KERNEL_MEMBER float value_scale() const {
    if constexpr (shape::scaled) return softmax().largest_value_scale();
    return 1;
  }

  TWILL_KERNEL_MEMBER floats2 top_and_sum(int h) const {
    return ptx.template load_shared<floats2>(shape::tops_at + static_cast<unsigned>(h) * 8);
  }

  /// Stores a chunk's result for combine_attention. `chunk` counts from the row's first chunk.
  TWILL_KERNEL_MEMBER void store_chunk(int chunk, const accumulators& sum) const {
    const chunk_results& results = args.results;
    const float scale = value_scale();
    TWILL_UNROLL
    for (int i = 0; i < thread_heads; ++i) {
      if (head_of(i) >= heads) continue;
      const std::int64_t place = results.place(number, head + head_of(i), chunk);
      if (dimension_of(0) == 0) {
        const floats2 top = top_and_sum(head_of(i));
        ptx.store(results.tops + place, top.value[0]);
        ptx.store(results.weights + place, top.value[1]);
      }
      TWILL_UNROLL
      for (int n = 0; n < thread_sums; ++n)
        if (has_sum(n))
          ptx.store(results.sums + place * Dim + dimension_of(n), sum_of(sum, i, n) * scale);
    }
  }

  TWILL_KERNEL_MEMBER void run() {
    if (!find_work()) return;
    const int first_chunk = begin / decode_chunk;
    const int last_chunk = (end - 1) / decode_chunk;
    const int mine = ptx.block() / args.parts % args.splits;
    if (first_chunk + mine > last_chunk) return;
    merged_chunks merged[thread_heads];
    totals total = {};
    for (int chunk = mine; first_chunk + chunk <= last_chunk; chunk += args.splits) {
      accumulators sum = {};
      attend(first_chunk + chunk, chunk == mine, sum);
      if (args.splits > 1)
        store_chunk(chunk, sum);
      else
        merge_chunk(sum, merged, total);
    }
    if (args.splits == 1) store_output(merged, total);
  }

  /// Finds the block's row and heads. Returns false if the block has nothing to do.
  TWILL_KERNEL_MEMBER bool find_work() {
    const int item = ptx.block() / args.parts / args.splits;
    number = item / args.kv.n_kv_heads;
    row = decode_row(ptx, number, args.first_token);
    if (row < 0) return false;
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
    return true;
  }

  TWILL_KERNEL_MEMBER void merge_chunk(const accumulators& sum,
                                       merged_chunks (&merged)[thread_heads], totals& total) const {
    const float scale = value_scale();
    TWILL_UNROLL
    for (int i = 0; i < thread_heads; ++i) {
      const floats2 top = top_and_sum(head_of(i));
      merged[i].add(top.value[0], top.value[1]);
      TWILL_UNROLL
      for (int n = 0; n < thread_sums; ++n)
        total[i][n] = merged[i].merge(total[i][n], sum_of(sum, i, n) * scale);
    }
  }

  TWILL_KERNEL_MEMBER void store_output(const merged_chunks (&merged)[thread_heads],
                                        const totals& total) const {
    TWILL_UNROLL
    for (int i = 0; i < thread_heads; ++i) {
      if (head_of(i) >= heads) continue;
      TWILL_UNROLL
      for (int n = 0; n < thread_sums; ++n)
        if (has_sum(n))
          args.out.store(ptx, row, std::int64_t{head + head_of(i)} * Dim + dimension_of(n),
                         total[i][n] / merged[i].sum);
    }
  }
};

} // namespace twill::gpu::cuda
