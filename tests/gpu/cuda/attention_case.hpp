// Common parts of the tests of attention's CUDA kernels: sequences in paged KV, a naive oracle, and
// decode attention in the emulator.
#pragma once

#include "tests/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "gpu/attention/cuda/combine_attention.hpp"
#include "gpu/attention/cuda/decode_attention.hpp"
#include "gpu/detail/kv_rows.hpp"
#include "gpu/detail/shapes.hpp"
#include "tests/gpu/cuda/emulator.hpp"
#include "tests/gpu/ragged_case.hpp"
#include "tests/gpu/sparse_memory.hpp"

namespace twill::test {

using namespace twill::gpu;

/// The shape of a model's attention, and the layout of its KV in memory.
struct attention_shape {
  int n_heads = 4, n_kv_heads = 1, block_tokens = 16;
  std::int32_t window = 0;
  bool alibi = false;
  float key_size = 1, value_size = 1, query_size = 1;
  std::int32_t start = 0;      ///< the first position that is stored, which begins a block
  std::int64_t block_step = 1; ///< block ids are multiples of it
  std::int64_t apart = 64, scale_apart = 5;
};

/// An array whose memory is reserved as a whole, committed only where it is touched, and aligned as
/// a GPU allocation is. An array of up to 64 MiB is filled with NaN; a larger one with zeros.
template <class T>
class arena {
public:
  explicit arena(std::int64_t elements)
      : memory_((elements + 1) * static_cast<std::int64_t>(sizeof(T))) {
    if (memory_.bytes() <= std::size_t{64} << 20) std::memset(data(), 0xff, memory_.bytes());
  }

  T* data() const { return memory_.as<T>(); }
  T& operator[](std::int64_t i) const { return data()[i]; }
  global_range range(bool writable) const { return {data(), memory_.bytes(), writable}; }

private:
  sparse_memory memory_;
};

/// Sequences in paged KV. Their blocks are scattered over two distant parts of one array (`arena`).
/// All memory of it outside the sequences' positions holds NaN.
template <class Element, int Dim>
struct sequences {
  attention_shape s;
  std::vector<int> lengths;
  int n_blocks = 3, half;
  std::vector<std::vector<std::int32_t>> tables;
  std::int64_t stride, scale_stride;
  arena<Element> keys, values;
  arena<float> key_scales, value_scales;
  std::vector<float> slopes;
  std::vector<std::vector<float>> q; // (length, n_heads * Dim), zero except in the rows that are
                                     // computed

  static int blocks_of(const std::vector<int>& lengths, int block_tokens) {
    int n = 3;
    for (const int length : lengths)
      n += (length + block_tokens - 1) / block_tokens;
    return n;
  }

  sequences(const attention_shape& s_, const std::vector<int>& lengths_)
      : s(s_), lengths(lengths_), n_blocks(blocks_of(lengths_, s_.block_tokens)),
        half(static_cast<int>(n_blocks / 2 * s.block_step)),
        stride(std::int64_t{s.n_kv_heads} * s.block_tokens * Dim + 32),
        scale_stride(std::int64_t{s.n_kv_heads} * s.block_tokens + 3),
        keys(n_blocks * s.block_step * stride + s.apart),
        values(n_blocks * s.block_step * stride + s.apart),
        key_scales(n_blocks * s.block_step * scale_stride + s.scale_apart),
        value_scales(n_blocks * s.block_step * scale_stride + s.scale_apart) {
    std::mt19937 random(7);
    std::vector<std::int32_t> ids(static_cast<std::size_t>(n_blocks));
    for (int i = 0; i < n_blocks; ++i)
      ids[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i * s.block_step);
    std::shuffle(ids.begin(), ids.end(), random);
    std::size_t next = 0;
    unsigned seed = 20;
    for (const int length : lengths) {
      const int count = (length + s.block_tokens - 1) / s.block_tokens;
      tables.emplace_back(ids.begin() + static_cast<std::ptrdiff_t>(next),
                          ids.begin() + static_cast<std::ptrdiff_t>(next) + count);
      next += static_cast<std::size_t>(count);
      const auto n = static_cast<std::size_t>(length) * static_cast<std::size_t>(Dim);
      const auto kv = static_cast<std::size_t>(s.n_kv_heads);
      const auto k = random_floats(n * kv, seed++, s.key_size);
      const auto v = random_floats(n * kv, seed++, s.value_size);
      for (int p = 0; p < length; ++p)
        for (int h = 0; h < s.n_kv_heads; ++h) {
          const std::size_t from =
              (static_cast<std::size_t>(p) * kv + static_cast<std::size_t>(h)) * Dim;
          put(tables.size() - 1, p, h, k.data() + from, v.data() + from);
        }
      q.push_back(random_floats(n * static_cast<std::size_t>(s.n_heads), seed++, s.query_size));
    }
    for (int h = 0; h < s.n_heads; ++h)
      slopes.push_back(
          std::exp2(-8.0f * static_cast<float>(h + 1) / static_cast<float>(s.n_heads)));
  }

  kv_layer layer() {
    kv_layer kv;
    kv.keys = keys.data();
    kv.values = values.data();
    kv.type = kv_element<Element>::type;
    kv.n_blocks = half;
    kv.n_kv_heads = s.n_kv_heads;
    kv.block_tokens = s.block_tokens;
    kv.head_dim = Dim;
    kv.key_scales = key_scales.data();
    kv.value_scales = value_scales.data();
    kv.block_stride = stride;
    kv.scale_stride = scale_stride;
    kv.apart = s.apart;
    kv.scale_apart = s.scale_apart;
    return detail::checked_kv(kv);
  }

  struct place {
    std::int64_t key, value, scale;
  };
  place place_of(std::size_t sequence, int position, int kv_head) const {
    const std::int64_t block =
        tables[sequence][static_cast<std::size_t>(position / s.block_tokens)];
    const int offset = position % s.block_tokens;
    const std::int64_t in_block = std::int64_t{kv_head} * s.block_tokens;
    const std::int64_t first = block * stride + (block < half ? 0 : s.apart) + in_block * Dim;
    return {first + offset, first + std::int64_t{offset} * Dim,
            block * scale_stride + (block < half ? 0 : s.scale_apart) + in_block + offset};
  }
  void put(std::size_t sequence, int position, int kv_head, const float* k, const float* v) {
    const place at = place_of(sequence, position, kv_head);
    Element kept[Dim];
    key_scales[at.scale] = detail::store_row(kept, k, Dim);
    for (int d = 0; d < Dim; ++d)
      keys.data()[at.key + d * s.block_tokens] = kept[d];
    value_scales[at.scale] = detail::store_row(values.data() + at.value, v, Dim);
  }

  struct exact_row {
    std::vector<double> out;
    double largest = 0; ///< the largest magnitude of a value
    double spread = 0;  ///< the largest sum of the magnitudes of a score's products
  };
  /// Attention of one row, computed in f64.
  exact_row exact(std::size_t sequence, int position) {
    exact_row row;
    const int group = s.n_heads / s.n_kv_heads;
    const float scale = 1 / std::sqrt(static_cast<float>(Dim));
    const int begin = s.window > 0 ? std::max(0, position + 1 - s.window) : 0;
    constexpr bool scaled = kv_element<Element>::scaled;
    for (int h = 0; h < s.n_heads; ++h) {
      const float* query = q[sequence].data() + (static_cast<std::size_t>(position) *
                                                     static_cast<std::size_t>(s.n_heads) +
                                                 static_cast<std::size_t>(h)) *
                                                    Dim;
      std::vector<double> scores;
      double top = -INFINITY;
      for (int p = begin; p <= position; ++p) {
        const place at = place_of(sequence, p, h / group);
        const double step = scaled ? double{key_scales[at.scale]} : 1;
        double dot = 0, magnitude = 0;
        for (int d = 0; d < Dim; ++d) {
          const double product = double{query[d]} * double{scale} * step *
                                 double{detail::widen(keys.data()[at.key + d * s.block_tokens])};
          dot += product;
          magnitude += std::abs(product);
        }
        row.spread = std::max(row.spread, magnitude);
        if (s.alibi) dot += double{slopes[static_cast<std::size_t>(h)]} * (p - position);
        scores.push_back(dot);
        top = std::max(top, dot);
      }
      std::vector<double> total(Dim);
      double sum = 0;
      for (int p = begin; p <= position; ++p) {
        const place at = place_of(sequence, p, h / group);
        const double weight = std::exp(scores[static_cast<std::size_t>(p - begin)] - top);
        sum += weight;
        for (int d = 0; d < Dim; ++d) {
          double value = double{detail::widen(values.data()[at.value + d])};
          if (scaled) value *= double{value_scales[at.scale]};
          row.largest = std::max(row.largest, std::abs(value));
          total[static_cast<std::size_t>(d)] += weight * value;
        }
      }
      for (const double x : total)
        row.out.push_back(x / sum);
    }
    return row;
  }
};

/// A row of a sequence.
struct asked {
  std::size_t sequence;
  int position; ///< counted from the first position that is stored
};
/// How decode attention is run.
struct options {
  int splits = 1;
  std::int64_t first_row = 0; ///< rows before it are not computed
  int spare_columns = 0;      ///< unused columns of the block table
  int spare_chunks = 0;       ///< unused chunks in the arrays of partial results
  bool grid = false;          ///< emulate all blocks together, by run_grid()
  dtype out_type = dtype::f32;
  bool order_records = false; ///< record the order of sums: see emulator.hpp
  /// If not empty, the kernel computes only the rows of sequences that have a single row in the
  /// step. The array is ragged_batch::first_token: the index of each sequence's first row in the
  /// step, and then the number of rows.
  std::vector<std::int32_t> first_token;
};

/// Runs the kernel of decode attention in the emulator for some rows, with the grid of thread
/// blocks that the options give. Outputs of 16 bits are widened to f32.
template <class Element, int Dim, int Tiles>
std::vector<float> decode(sequences<Element, Dim>& from, const std::vector<asked>& rows,
                          const options& o, block_report& report) {
  using kernel_shape = cuda::decode_shape<Element, Dim, Tiles>;
  const attention_shape& s = from.s;
  const std::int64_t width = std::int64_t{s.n_heads} * Dim;
  const std::int64_t first_column = s.start / s.block_tokens;
  std::int64_t columns = first_column + 1;
  for (const auto& t : from.tables)
    columns = std::max(columns, first_column + static_cast<std::int64_t>(t.size()));
  columns += o.spare_columns;
  const arena<std::int32_t> table(static_cast<std::int64_t>(from.tables.size()) * columns);
  for (std::size_t i = 0; i < from.tables.size(); ++i)
    std::copy(from.tables[i].begin(), from.tables[i].end(),
              table.data() + static_cast<std::int64_t>(i) * columns + first_column);
  const std::int64_t end_row = o.first_row + static_cast<std::int64_t>(rows.size());
  const arena<std::int32_t> positions(end_row), sequence_of(end_row);
  const arena<float> q(end_row * width), out(end_row * width);
  const arena<std::uint16_t> halves(end_row * width);
  int chunks = 1;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int64_t row = o.first_row + static_cast<std::int64_t>(i);
    positions[row] = s.start + rows[i].position;
    sequence_of[row] = static_cast<std::int32_t>(rows[i].sequence);
    std::copy_n(from.q[rows[i].sequence].data() + rows[i].position * width, width,
                q.data() + row * width);
    std::fill_n(out.data() + row * width, width, NAN);
    chunks = std::max(chunks,
                      (s.start % cuda::decode_chunk + rows[i].position) / cuda::decode_chunk + 1);
  }
  chunks += o.spare_chunks;
  const std::int64_t results = end_row * s.n_heads * chunks;
  const arena<float> tops(results), weights(results), sums(results * Dim);

  cuda::decode_attention_args args{};
  args.q = q.data();
  args.q_stride = width;
  args.out = {o.out_type == dtype::f32 ? static_cast<void*>(out.data()) : halves.data(), o.out_type,
              width};
  args.kv = from.layer();
  args.group = s.n_heads / s.n_kv_heads;
  args.parts = (args.group + kernel_shape::heads - 1) / kernel_shape::heads;
  args.splits = o.splits;
  args.scale = 1 / std::sqrt(static_cast<float>(Dim));
  args.window = s.window;
  args.slopes = s.alibi ? from.slopes.data() : nullptr;
  args.max_blocks = static_cast<std::int32_t>(columns);
  args.positions = positions.data();
  args.sequence_of = sequence_of.data();
  args.first_token = o.first_token.empty() ? nullptr : o.first_token.data();
  args.block_table = table.data();
  args.results = {tops.data(), weights.data(), sums.data(), s.n_heads, chunks};
  grid_shape grid;
  grid.seed = 3;
  grid.block.order_records = o.order_records;
  const auto run = [&](int blocks_of_row, const std::function<void(emulated_ptx)>& body) {
    const std::size_t n = o.first_token.empty() ? rows.size() : o.first_token.size() - 1;
    grid.blocks = static_cast<int>(n) * blocks_of_row;
    if (o.grid) return run_grid(grid, body);
    block_report all;
    for (int b = 0; b < grid.blocks; ++b) {
      grid.block.index = static_cast<int>(o.first_row * blocks_of_row) + b;
      const block_report one = run_block(grid.block, body);
      all.bank_conflicts += one.bank_conflicts;
      all.shared_accesses += one.shared_accesses;
    }
    return all;
  };
  grid.block.threads = cuda::decode_threads;
  grid.block.shared_bytes = kernel_shape::shared_bytes;
  grid.block.global = {{from.slopes.data(), from.slopes.size() * sizeof(float), false},
                       from.keys.range(false),
                       from.values.range(false),
                       from.key_scales.range(false),
                       from.value_scales.range(false),
                       q.range(false),
                       positions.range(false),
                       sequence_of.range(false),
                       table.range(false),
                       {o.first_token.data(), o.first_token.size() * sizeof(std::int32_t), false},
                       out.range(true),
                       halves.range(true),
                       tops.range(true),
                       weights.range(true),
                       sums.range(true)};
  report = run(s.n_kv_heads * args.parts * o.splits, [&](emulated_ptx ptx) {
    cuda::decode_attention<Element, Dim, Tiles, emulated_ptx>{{ptx}, args}.run();
  });
  if (o.splits > 1) {
    const cuda::combine_attention_args combine{
        args.results, Dim, s.window, positions.data(), args.first_token, args.out};
    grid.block.threads = cuda::combine_threads;
    grid.block.shared_bytes = 0;
    grid.block.global = {positions.range(false),
                         {o.first_token.data(), o.first_token.size() * sizeof(std::int32_t), false},
                         tops.range(false),
                         weights.range(false),
                         sums.range(false),
                         out.range(true),
                         halves.range(true)};
    run(s.n_heads, [&](emulated_ptx ptx) {
      cuda::combine_attention<emulated_ptx>{ptx, combine}.run();
    });
  }
  std::vector<float> got;
  for (std::int64_t i = o.first_row * width; i < end_row * width; ++i)
    got.push_back(o.out_type == dtype::f32   ? out[i]
                  : o.out_type == dtype::f16 ? detail::f16_to_f32(halves[i])
                                             : detail::bf16_to_f32(halves[i]));
  return got;
}

/// The kernels round each operand to the sum of two 16-bit floats or, for f32 KV, to one f32; this
/// is the relative error of that rounding. The error of an output is at most this number * (1 + the
/// largest sum of the |products| of a score, which is a dot product of query and key) * the largest
/// |value|.
template <class Element>
inline constexpr double attention_epsilon = kv_element<Element>::type == dtype::f32    ? 0x1p-24
                                            : kv_element<Element>::type == dtype::bf16 ? 0x1p-17
                                                                                       : 0x1p-21;

/// How many outputs of some rows are not what the oracle says, NaN among them.
template <class Element, int Dim>
int wrong_outputs(sequences<Element, Dim>& from, const std::vector<asked>& rows,
                  const std::vector<float>& got) {
  int wrong = 0;
  std::size_t i = 0;
  for (const asked& row : rows) {
    const auto want = from.exact(row.sequence, row.position);
    const double bound = attention_epsilon<Element> * (1 + want.spread) * want.largest;
    for (const double x : want.out)
      wrong += !(std::abs(double{got[i++]} - x) <= bound);
  }
  return wrong;
}

} // namespace twill::test
