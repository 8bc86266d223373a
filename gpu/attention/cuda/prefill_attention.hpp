// prefill_attention: the code of the attention kernel for prompts. A block has up to prefill_rows
// query rows (pairs of a token and a query head) of one sequence and one KV head, which share the
// keys and values. The code is a template over Ptx (gpu/cuda/ptx.hpp): attention_cuda.cu
// instantiates it as CUDA kernels, and tests run it on an emulation of a GPU.
//
// A row gets the same bits as from decode_attention: the products are the same mma with the same
// operands, summed in ascending order of the positions in a chunk of 256; softmax adds in the same
// order; and chunks are merged by the same operations. A position that a row does not see gets the
// weight 0, which changes no sum. A chunk of which the row sees nothing does not change its result.
//
// A warp keeps the scores of its eight query rows for one chunk in registers. mma computes tiles of
// 8 query rows by 8 columns (positions in the order of decode_pieces.hpp). In each tile a thread
// has two neighbouring columns of row lane / 4, where `lane` is the thread's number in its warp.
// mma returns the scores in this layout and also takes the softmax weights in it.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/attention/cuda/merge_chunks.hpp"
#include "gpu/attention/cuda/prefill_staging.hpp"

namespace twill::gpu::cuda {

template <class Element, int Dim, class Ptx>
struct prefill_attention : prefill_staging<Element, prefill_shape<Element, Dim>, Ptx> {
  using shape = prefill_shape<Element, Dim>;
  using base = prefill_staging<Element, shape, Ptx>;
  using base::args, base::begin_step, base::begin_steps, base::columns, base::find_places,
      base::find_work, base::first_chunk, base::is_idle, base::known_of, base::lane, base::larger,
      base::last_chunk, base::load_queries, base::multiply_piece, base::position_of, base::ptx,
      base::range_before, base::seen_in, base::split, base::this_kept_row, base::this_row,
      base::with_alibi;
  using base::base;
  using typename base::kept_row;
  using typename base::query_row;

  /// Tiles of 8 columns of a chunk.
  static constexpr int tiles = prefill_chunk / 8;
  using queries = std::uint32_t[Dim / 16][4];
  /// The thread's scores of a chunk. Later the same registers hold the softmax weights as operands
  /// of mma. Each weight is then split into two 16-bit parts: the thread has two columns of each
  /// tile, and element [tile][0] then holds the bits of the first parts of both, element [tile][1]
  /// those of the second parts.
  using chunk_scores = float[tiles][2];
  /// The sums of weighted values of one row for a slice of dimensions, in two parts.
  using slice_sums = float[shape::value_segments][columns][4];

  int chunk_begin = 0;

  TWILL_KERNEL_MEMBER void run() {
    if (!find_work()) return;
    begin_steps();
    queries query;
    load_queries(query);
    if constexpr (shape::keeps_queries) store_queries(query);
    TWILL_UNROLL_TIMES(1)
    for (int i = 0; i < shape::slices * quads; ++i)
      ptx.store_shared(total_at(i), floats4{});
    merged_chunks merged;
    for (int chunk = first_chunk(); chunk <= last_chunk(); ++chunk)
      attend(chunk, query, merged);
    ptx.template wait<0>(); // of groups without copies
    store_output(this_row(), merged);
  }

private:
  TWILL_KERNEL_MEMBER static unsigned query_at(int thread, int k) {
    return shape::queries_at + static_cast<unsigned>(k * shape::threads + thread) * 16;
  }
  TWILL_KERNEL_MEMBER void store_queries(const queries& query) const {
    TWILL_UNROLL
    for (int k = 0; k < Dim / 16; ++k)
      ptx.store_shared(query_at(ptx.thread(), k),
                       words4{{query[k][0], query[k][1], query[k][2], query[k][3]}});
  }
  TWILL_KERNEL_MEMBER void reload_queries(queries& query) const {
    TWILL_UNROLL
    for (int k = 0; k < Dim / 16; ++k) {
      const auto kept = ptx.template load_shared<words4>(query_at(ptx.thread(), k));
      TWILL_UNROLL
      for (int i = 0; i < 4; ++i)
        query[k][i] = kept.word[i];
    }
  }

  TWILL_KERNEL_MEMBER void attend(int chunk, queries& query, merged_chunks& merged) {
    chunk_begin = chunk * prefill_chunk;
    find_places(chunk + 1);
    const position_range of_block = seen_in(chunk);
    chunk_scores score = {};
    if constexpr (shape::keeps_queries) reload_queries(query);
    TWILL_UNROLL
    for (int tile = 0; tile < shape::sub_tiles; ++tile) {
      const int begin = tile * shape::positions;
      if (!of_block.meets(begin, begin + shape::positions)) continue;
      const unsigned slot = begin_step();
      if (!is_idle) multiply_keys(tile, slot, query, score);
    }
    float scale = 1;
    bool sees = false;
    if (!is_idle) sees = take_softmax(chunk, score, merged, scale);
    TWILL_UNROLL_TIMES(1)
    for (int slice = 0; slice < shape::slices; ++slice) {
      slice_sums sum = {};
      TWILL_UNROLL
      for (int tile = 0; tile < shape::value_tiles; ++tile) {
        const int begin = tile * shape::value_positions;
        if (!of_block.meets(begin, begin + shape::value_positions)) continue;
        const unsigned slot = begin_step();
        if (!is_idle) multiply_values(slice, begin, slot, of_block, score, sum);
      }
      if (sees) merge_slice(slice, merged, sum, scale);
    }
  }

  /// Computes the scores of a sub-tile of keys.
  TWILL_KERNEL_MEMBER void multiply_keys(int sub_tile, unsigned slot, const queries& query,
                                         chunk_scores& score) const {
    constexpr int at_once = 4 / columns; // pieces, whose sums are 16 registers
    TWILL_UNROLL
    for (int first = 0; first < shape::key_segments; first += at_once) {
      float d[at_once][columns][4] = {};
      TWILL_UNROLL
      for (int k = 0; k < Dim; k += 32) {
        const int from = k + 32 > Dim ? Dim - 32 : k; // the last 16 come with 16 that were taken
        TWILL_UNROLL
        for (int i = 0; i < at_once; ++i) {
          std::uint32_t b[4];
          ptx.template load_matrices<true>(b, slot +
                                                  swizzled<shape::key_segments>(lane(), first + i) +
                                                  from * shape::key_segments * 16);
          if (from == k) multiply_piece(d[i], query[k / 16], b[0], b[1]);
          multiply_piece(d[i], query[from / 16 + 1], b[2], b[3]);
        }
      }
      const float back = this_kept_row().back;
      TWILL_UNROLL
      for (int i = 0; i < at_once * columns; ++i) {
        const int tile = (sub_tile * shape::key_segments + first) * columns + i;
        const float(&products)[4] = d[i / columns][i % columns];
        TWILL_UNROLL
        for (int c = 0; c < 2; ++c)
          score[tile][c] = (products[c] + products[c + 2]) * back;
      }
    }
  }

  /// Whether the row sees the position of the thread's score `i`.
  struct seen_places {
    unsigned from, n;
    TWILL_KERNEL_MEMBER bool operator()(int i) const {
      return from + static_cast<unsigned>(place_of(i)) < n;
    }
  };

  /// Turns the chunk's scores into softmax weights and adds their sum to `merged`. Sets `scale`, by
  /// which the caller must multiply the chunk's sums of values before it adds them to those of
  /// earlier chunks (merge_slice()). Returns false if the thread's row sees nothing of the chunk:
  /// its weights are then NaN, and the caller must merge nothing of this chunk.
  TWILL_KERNEL_MEMBER bool take_softmax(int chunk, chunk_scores& x, merged_chunks& merged,
                                        float& scale) const {
    const kept_row of = this_kept_row();
    position_range seen = range_before(of.end);
    seen = {seen.begin - chunk_begin, seen.end - chunk_begin};
    const bool sees = seen.meets(0, prefill_chunk);
    const seen_places places{static_cast<unsigned>(first_place() - seen.begin),
                             static_cast<unsigned>(seen.end - seen.begin)};
    if constexpr (shape::scaled) apply_key_scales(chunk, x);
    if (args.slopes != nullptr) add_alibi(of.end, x);
    if (seen.begin > 0 || seen.end < prefill_chunk) hide(places, x);
    float top = -INFINITY;
    TWILL_UNROLL
    for (int i = 0; i < 2 * tiles; ++i)
      top = larger(top, x[i / 2][i % 2]);
    top = largest_of_row(top);
    float part[4] = {};
    TWILL_UNROLL
    for (int i = 0; i < 2 * tiles; ++i) {
      float& one = x[i / 2][i % 2];
      one = ::expf(ptx.add(one, -top));
      // part[p] adds up the same columns in the same order as the thread of decode_softmax whose
      // number j among the threads of a head is 4 * p + lane % 4.
      part[i / 2 % 4] = ptx.add(part[i / 2 % 4], one);
    }
    float sum = ptx.add(ptx.add(part[0], part[2]), ptx.add(part[1], part[3]));
    for (int mask = 2; mask > 0; mask /= 2)
      sum = ptx.add(sum, ptx.shuffle_xor(sum, mask));
    if (sees) merged.add(top, sum);
    if constexpr (shape::scaled) scale = apply_value_scales(chunk, places, x);
    TWILL_UNROLL
    for (int tile = 0; tile < tiles; ++tile) {
      std::uint32_t first, second;
      split(x[tile][0], x[tile][1], first, second);
      x[tile][0] = detail::bits_to_f32(first);
      x[tile][1] = detail::bits_to_f32(second);
    }
    return sees;
  }
  TWILL_KERNEL_MEMBER float largest_of_row(float x) const {
    for (int mask = 2; mask > 0; mask /= 2)
      x = larger(x, ptx.shuffle_xor(x, mask));
    return x;
  }
  TWILL_KERNEL_MEMBER void apply_key_scales(int chunk, chunk_scores& score) const {
    TWILL_UNROLL
    for (int tile = 0; tile < tiles; ++tile) {
      const floats2 scale = scales_of(chunk, shape::key_scales_at, tile);
      TWILL_UNROLL
      for (int c = 0; c < 2; ++c)
        score[tile][c] *= scale.value[c];
    }
  }
  /// The scales of the thread's columns of a tile, of keys or of values.
  TWILL_KERNEL_MEMBER floats2 scales_of(int chunk, unsigned at, int tile) const {
    return ptx.template load_shared<floats2>(
        known_of(chunk) + at + static_cast<unsigned>(8 * tile + 2 * (lane() % 4)) * 4);
  }
  /// Adds ALiBi's biases.
  TWILL_KERNEL_MEMBER void add_alibi(int end, chunk_scores& score) const {
    const float slope = ptx.load(args.slopes + this_row().head);
    const int first = chunk_begin + first_place();
    TWILL_UNROLL
    for (int i = 0; i < 2 * tiles; ++i)
      score[i / 2][i % 2] = with_alibi(score[i / 2][i % 2], slope, first + place_of(i), end);
  }
  /// Sets the score to -INFINITY where the row does not see the position.
  TWILL_KERNEL_MEMBER void hide(const seen_places& is_seen, chunk_scores& score) const {
    TWILL_UNROLL
    for (int i = 0; i < 2 * tiles; ++i)
      if (!is_seen(i)) score[i / 2][i % 2] = -INFINITY;
  }
  /// The thread's score `i` belongs to position first_place() + place_of(i) of the chunk.
  TWILL_KERNEL_MEMBER int first_place() const { return 2 * (lane() % 4) * columns; }
  TWILL_KERNEL_MEMBER static constexpr int place_of(int i) {
    return position_of(i / 2 * 8 + i % 2);
  }
  /// Multiplies the weights by the scales of their values, divided by the largest scale that the
  /// row sees in the chunk, so that f16 can hold them whatever the magnitude of the values. Returns
  /// that largest scale.
  TWILL_KERNEL_MEMBER float apply_value_scales(int chunk, const seen_places& is_seen,
                                               chunk_scores& x) const {
    float largest = 0;
    TWILL_UNROLL
    for (int tile = 0; tile < tiles; ++tile) {
      const floats2 scale = scales_of(chunk, shape::value_scales_at, tile);
      TWILL_UNROLL
      for (int c = 0; c < 2; ++c)
        largest = larger(largest, is_seen(2 * tile + c) ? scale.value[c] : 0.0f);
    }
    largest = largest_of_row(largest);
    if (largest == 0) largest = 1;
    const float over = 1.0f / largest;
    TWILL_UNROLL
    for (int tile = 0; tile < tiles; ++tile) {
      const floats2 scale = scales_of(chunk, shape::value_scales_at, tile);
      TWILL_UNROLL
      for (int c = 0; c < 2;
           ++c) // the scale of a position that the row does not see is unspecified
        x[tile][c] = x[tile][c] == 0 ? 0.0f : x[tile][c] * (over * scale.value[c]);
    }
    return largest;
  }

  /// Adds the weighted values in a slot, which holds one slice of dimensions.
  TWILL_KERNEL_MEMBER void multiply_values(int slice, int begin, unsigned slot,
                                           const position_range& of_block,
                                           const chunk_scores& weight, slice_sums& sum) const {
    TWILL_UNROLL
    for (int k = 0; k < shape::value_positions; k += 32) {
      if (!of_block.meets(begin + k, begin + k + 32)) continue;
      TWILL_UNROLL
      for (int i = 0; i < shape::value_segments; ++i) {
        if (slice * shape::slice + i * shape::piece >= Dim) continue;
        std::uint32_t b[4];
        ptx.template load_matrices<true>(b, slot + swizzled<shape::value_segments>(lane(), i) +
                                                k * shape::value_segments * 16);
        TWILL_UNROLL
        for (int half = 0; half < 2; ++half) {
          const int tile = (begin + k) / 8 + 2 * half;
          const std::uint32_t a[4] = {
              detail::f32_to_bits(weight[tile][0]), detail::f32_to_bits(weight[tile][1]),
              detail::f32_to_bits(weight[tile + 1][0]), detail::f32_to_bits(weight[tile + 1][1])};
          multiply_piece(sum[i], a, b[2 * half], b[2 * half + 1]);
        }
      }
    }
  }

  /// The sums of weighted values over all chunks are stored in shared memory in groups of four; a
  /// thread has `quads` groups for each slice of 32 dimensions. total_at(i) is the offset of the
  /// thread's group i.
  static constexpr int quads = shape::thread_sums / 4;
  TWILL_KERNEL_MEMBER unsigned total_at(int i) const {
    return shape::totals_at + static_cast<unsigned>(i * shape::threads + ptx.thread()) * 16;
  }
  TWILL_KERNEL_MEMBER void merge_slice(int slice, const merged_chunks& merged,
                                       const slice_sums& sum, float scale) const {
    TWILL_UNROLL
    for (int i = 0; i < quads; ++i) {
      const unsigned at = total_at(slice * quads + i);
      auto total = ptx.template load_shared<floats4>(at);
      TWILL_UNROLL
      for (int j = 0; j < 4; ++j) {
        const int n = 4 * i + j;
        const float(&d)[4] = sum[n / (2 * columns)][n / 2 % columns];
        total.value[j] = merged.merge(total.value[j], (d[n % 2] + d[n % 2 + 2]) * scale);
      }
      ptx.store_shared(at, total);
    }
  }

  TWILL_KERNEL_MEMBER void store_output(const query_row& of, const merged_chunks& merged) const {
    if (!of.is_stored) return;
    TWILL_UNROLL_TIMES(1)
    for (int i = 0; i < shape::slices * quads; ++i) {
      const auto total = ptx.template load_shared<floats4>(total_at(i));
      TWILL_UNROLL
      for (int j = 0; j < 4; ++j) {
        const int n = i % quads * 4 + j;
        const int first = i / quads * shape::slice + n / (2 * columns) * shape::piece;
        if (first >= Dim) continue;
        const int dimension = first + (2 * (lane() % 4) + n % 2) * columns + n / 2 % columns;
        args.out.store(ptx, of.row, std::int64_t{of.head} * Dim + dimension,
                       total.value[j] / merged.sum);
      }
    }
  }
};

} // namespace twill::gpu::cuda
