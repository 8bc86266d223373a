#include "tests/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "gpu/attention/cuda/combine_attention.hpp"
#include "gpu/attention/cuda/decode_attention.hpp"
#include "gpu/detail/kv_rows.hpp"
#include "gpu/detail/shapes.hpp"
#include "tests/gpu/cuda/emulator.hpp"
#include "tests/gpu/ragged_case.hpp"
#include "tests/gpu/sparse_memory.hpp"

using namespace twill::gpu;
using twill::test::block_report;
using twill::test::emulated_ptx;

namespace {

struct shape {
  int n_heads = 4, n_kv_heads = 1, block_tokens = 16;
  std::int32_t window = 0;
  bool alibi = false;
  float key_size = 1, value_size = 1, query_size = 1;
  std::int32_t start = 0;      ///< the first position that is stored, which begins a block
  std::int64_t block_step = 1; ///< block ids are multiples of it
  std::int64_t apart = 64, scale_apart = 5;
};

/// Memory of which only what is touched costs anything, aligned as a GPU's. Up to 64 MiB begin as
/// NaN, and more as zeros.
template <class T>
class arena {
public:
  explicit arena(std::int64_t elements)
      : memory_((elements + 1) * static_cast<std::int64_t>(sizeof(T))) {
    if (memory_.bytes() <= std::size_t{64} << 20) std::memset(data(), 0xff, memory_.bytes());
  }

  T* data() const { return memory_.as<T>(); }
  T& operator[](std::int64_t i) const { return data()[i]; }
  twill::test::global_range range(bool writable) const {
    return {data(), memory_.bytes(), writable};
  }

private:
  twill::test::sparse_memory memory_;
};

/// Sequences with scattered blocks in an arena in two parts that lie apart. What no position owns
/// is NaN.
template <class Element, int Dim>
struct sequences {
  shape s;
  std::vector<int> lengths;
  int n_blocks = 3, half;
  std::vector<std::vector<std::int32_t>> tables;
  std::int64_t stride, scale_stride;
  arena<Element> keys, values;
  arena<float> key_scales, value_scales;
  std::vector<float> slopes;
  std::vector<std::vector<float>> q; // (length, n_heads * Dim), zeros but for rows that are asked

  static int blocks_of(const std::vector<int>& lengths, int block_tokens) {
    int n = 3;
    for (const int length : lengths)
      n += (length + block_tokens - 1) / block_tokens;
    return n;
  }

  sequences(const shape& s_, const std::vector<int>& lengths_)
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
      const auto k = twill::test::random_floats(n * kv, seed++, s.key_size);
      const auto v = twill::test::random_floats(n * kv, seed++, s.value_size);
      for (int p = 0; p < length; ++p)
        for (int h = 0; h < s.n_kv_heads; ++h) {
          const std::size_t from =
              (static_cast<std::size_t>(p) * kv + static_cast<std::size_t>(h)) * Dim;
          put(tables.size() - 1, p, h, k.data() + from, v.data() + from);
        }
      q.push_back(twill::test::random_floats(n * static_cast<std::size_t>(s.n_heads), seed++,
                                             s.query_size));
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
    double largest = 0; ///< value
    double spread = 0;  ///< the largest sum of the magnitudes of a score's products
  };
  /// In f64.
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

struct asked {
  std::size_t sequence;
  int position; ///< from the first that is stored
};
struct options {
  int splits = 1;
  std::int64_t first_row = 0; ///< rows before it are not computed
  int spare_columns = 0;      ///< of the block table
  int spare_chunks = 0;       ///< of the results that are combined
  bool grid = false;          ///< blocks take turns
  dtype out_type = dtype::f32;
};

/// Attention of some rows, with the grid that the options say; outputs of 16 bits are widened.
template <class Element, int Dim, int Tiles>
std::vector<float> attend(sequences<Element, Dim>& from, const std::vector<asked>& rows,
                          const options& o, block_report& report) {
  using kernel_shape = cuda::decode_shape<Element, Dim, Tiles>;
  const shape& s = from.s;
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
  args.block_table = table.data();
  args.results = {tops.data(), weights.data(), sums.data(), s.n_heads, chunks};
  twill::test::grid_shape grid;
  grid.seed = 3;
  const auto run = [&](int blocks_of_row, const std::function<void(emulated_ptx)>& body) {
    grid.blocks = static_cast<int>(rows.size()) * blocks_of_row;
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
                       out.range(true),
                       halves.range(true),
                       tops.range(true),
                       weights.range(true),
                       sums.range(true)};
  report = run(s.n_kv_heads * args.parts * o.splits, [&](emulated_ptx ptx) {
    cuda::decode_attention<Element, Dim, Tiles, emulated_ptx>{{ptx}, args}.run();
  });
  if (o.splits > 1) {
    const cuda::combine_attention_args combine{args.results, Dim, s.window, positions.data(),
                                               args.out};
    grid.block.threads = cuda::combine_threads;
    grid.block.shared_bytes = 0;
    grid.block.global = {positions.range(false), tops.range(false), weights.range(false),
                         sums.range(false),      out.range(true),   halves.range(true)};
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

/// What rounding may change, relative to the largest: to two 16-bit parts, or to f32 where KV is.
template <class Element>
constexpr double epsilon = kv_element<Element>::type == dtype::f32    ? 0x1p-24
                           : kv_element<Element>::type == dtype::bf16 ? 0x1p-17
                                                                      : 0x1p-21;

/// Checks rows against the oracle, and that no access of shared memory conflicts.
template <class Element, int Dim, int Tiles>
std::vector<float> check(sequences<Element, Dim>& from, const std::vector<asked>& rows,
                         const options& o = {}) {
  block_report report;
  const std::vector<float> got = attend<Element, Dim, Tiles>(from, rows, o, report);
  CHECK(report.bank_conflicts == 0);
  CHECK(report.shared_accesses > 0);
  int wrong = 0; // also what is NaN
  std::size_t i = 0;
  for (const asked& row : rows) {
    const auto want = from.exact(row.sequence, row.position);
    const double bound = epsilon<Element> * (1 + want.spread) * want.largest;
    for (const double x : want.out)
      wrong += !(std::abs(double{got[i++]} - x) <= bound);
  }
  CHECK(wrong == 0);
  return got;
}

template <class Element, int Dim, int Tiles = 1>
void check_shape(const shape& s, const std::vector<int>& lengths, const options& o = {}) {
  CAPTURE(kv_element<Element>::key, Dim, Tiles, s.n_heads, s.n_kv_heads, s.block_tokens, s.window,
          s.alibi, s.key_size, s.value_size, s.query_size, lengths, o.splits);
  sequences<Element, Dim> from(s, lengths);
  std::vector<asked> rows;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    rows.push_back({i, lengths[i] - 1});
  check<Element, Dim, Tiles>(from, rows, o);
}

} // namespace

TEST_CASE("cuda decode attention agrees with a naive oracle over lengths, emulated") {
  for (const int length : {1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 255, 256, 257, 600}) {
    check_shape<kv_f16, 64>({}, {length});
    check_shape<kv_i8, 64>({}, {length});
    check_shape<float, 64>({}, {length});
  }
  check_shape<kv_bf16, 128>({.block_tokens = 32}, {600});
  check_shape<kv_f16, 128>({.n_heads = 32, .n_kv_heads = 8}, {1500, 700}, {.splits = 4});
  check_shape<float, 128>({.n_heads = 16, .n_kv_heads = 4}, {1500, 700}, {.splits = 4});
}

TEST_CASE("cuda decode attention agrees with a naive oracle over shapes, emulated") {
  check_shape<kv_f16, 128>({.n_heads = 8, .n_kv_heads = 2, .block_tokens = 8}, {70});
  check_shape<kv_bf16, 128>({.n_heads = 3, .n_kv_heads = 3, .block_tokens = 32}, {45});
  check_shape<kv_i8, 128>({.n_heads = 8, .n_kv_heads = 1, .block_tokens = 32}, {70});
  check_shape<kv_f16, 80>({.n_heads = 2, .n_kv_heads = 2, .block_tokens = 16}, {34});
  check_shape<kv_bf16, 80>({.n_heads = 2, .n_kv_heads = 2, .block_tokens = 24}, {90});
  check_shape<kv_i8, 80>({.n_heads = 2, .n_kv_heads = 2, .block_tokens = 48}, {90});
  check_shape<kv_f16, 96>({.n_heads = 5, .block_tokens = 64}, {90});
  check_shape<kv_bf16, 96>({.n_heads = 5, .block_tokens = 256}, {90});
  check_shape<kv_i8, 96>({.n_heads = 5, .block_tokens = 128}, {90});
  check_shape<kv_f16, 256>({.n_heads = 1, .block_tokens = 16}, {70});
  check_shape<kv_bf16, 256>({.n_heads = 4, .block_tokens = 8}, {70});
  check_shape<kv_i8, 256>({.n_heads = 4, .block_tokens = 16}, {70});
  check_shape<kv_f16, 64, 2>({.n_heads = 16, .block_tokens = 16}, {70});
  check_shape<kv_bf16, 64, 2>({.n_heads = 46, .n_kv_heads = 2, .block_tokens = 16}, {40});
  check_shape<kv_i8, 128, 2>({.n_heads = 11, .block_tokens = 16}, {70});
  check_shape<kv_f16, 256, 2>({.n_heads = 16, .block_tokens = 16}, {33});
  check_shape<kv_bf16, 256, 2>({.n_heads = 16, .block_tokens = 16}, {33});
  check_shape<kv_i8, 256, 2>({.n_heads = 16, .block_tokens = 16}, {65});
  check_shape<float, 64>({.n_heads = 3, .n_kv_heads = 3, .block_tokens = 8}, {45});
  check_shape<float, 80>({.n_heads = 2, .n_kv_heads = 2, .block_tokens = 4}, {90});
  check_shape<float, 96>({.n_heads = 5, .block_tokens = 12}, {90});
  check_shape<float, 128>({.n_heads = 8, .block_tokens = 256}, {70});
  check_shape<float, 256>({.n_heads = 4, .n_kv_heads = 2, .block_tokens = 16}, {70});
  check_shape<float, 64, 2>({.n_heads = 46, .n_kv_heads = 2, .block_tokens = 64}, {40});
  check_shape<float, 80, 2>({.n_heads = 9, .block_tokens = 20}, {70});
  check_shape<float, 96, 2>({.n_heads = 11, .block_tokens = 32}, {70});
  check_shape<float, 128, 2>({.n_heads = 16, .block_tokens = 16}, {70});
  check_shape<float, 256, 2>({.n_heads = 16, .block_tokens = 16}, {33});
}

TEST_CASE("cuda decode attention takes windows and ALiBi, emulated") {
  for (const std::int32_t window : {1, 2, 40, 64, 255, 256, 258, 300}) {
    check_shape<kv_f16, 64>({.window = window}, {90, 257, 517}, {.splits = window % 3 + 1});
    check_shape<kv_i8, 64>({.window = window, .alibi = true}, {90, 257, 517},
                           {.splits = window % 2 + 1});
    check_shape<float, 64>({.window = window, .alibi = window % 2 == 0}, {90, 257, 517},
                           {.splits = window % 3 + 1});
  }
  check_shape<kv_bf16, 64>({.n_heads = 12, .n_kv_heads = 4, .window = 290, .alibi = true}, {530});
  check_shape<kv_f16, 80, 2>({.n_heads = 20, .n_kv_heads = 2, .alibi = true}, {300});
}

TEST_CASE("cuda decode attention keeps its accuracy over magnitudes, emulated") {
  for (const float size : {1e-4f, 30.0f, 1e4f}) {
    check_shape<kv_f16, 64>({.value_size = size}, {70});
    check_shape<kv_f16, 64>({.key_size = size, .query_size = 1 / size}, {70});
    check_shape<kv_bf16, 64>({.key_size = size, .query_size = 1 / size}, {70});
    check_shape<kv_i8, 64>({.key_size = size, .value_size = size, .query_size = 1 / size}, {70});
    check_shape<float, 64>({.key_size = size, .value_size = size, .query_size = 1 / size}, {70});
  }
  // Beyond what f16 holds.
  check_shape<kv_f16, 64>({.query_size = 1e6f}, {70});
  check_shape<kv_f16, 64>({.key_size = 1e-2f, .query_size = 1e5f}, {70});
  check_shape<kv_bf16, 64>({.key_size = 1e5f, .value_size = 1e30f, .query_size = 1e-5f}, {70});
  check_shape<kv_i8, 64>({.key_size = 1e30f, .value_size = 1e30f, .query_size = 1e-30f}, {70});
  check_shape<kv_i8, 64>({.key_size = 1e-25f, .value_size = 1e-25f, .query_size = 1e25f}, {70});
  check_shape<float, 64>({.key_size = 1e5f, .value_size = 1e5f, .query_size = 1e-5f}, {70});
  check_shape<float, 64>({.key_size = 1e30f, .value_size = 1e30f, .query_size = 1e-30f}, {70});
  check_shape<float, 64>({.key_size = 1e-25f, .value_size = 1e-25f, .query_size = 1e25f}, {70});
  check_shape<float, 64>({.key_size = 5e37f, .query_size = 1e-36f}, {70});
}

TEST_CASE("a row of cuda decode attention has the same bits in any batch and grid, emulated") {
  const auto compare = []<class Element, int Dim, int Tiles>(const shape& s) {
    CAPTURE(kv_element<Element>::key, Dim, Tiles, s.window);
    sequences<Element, Dim> from(s, {700, 1, 100, 300});
    const std::vector<asked> alone = {{0, 699}};
    const std::vector<float> want = check<Element, Dim, Tiles>(from, alone);
    for (const options& o : {options{.splits = 2}, options{.splits = 3, .spare_columns = 30},
                             options{.splits = 7, .grid = true}}) {
      CAPTURE(o.splits);
      CHECK(twill::test::same_bits(want, check<Element, Dim, Tiles>(from, alone, o)));
    }
    std::vector<asked> many;
    for (int i = 0; i < 31; ++i)
      many.push_back({static_cast<std::size_t>(i % 3 + 1), 0});
    many[5].position = 0;
    many[1] = {2, 99};
    many[3] = {3, 299};
    many.insert(many.begin() + 17, alone[0]);
    for (const options& o : {options{}, options{.splits = 2, .spare_columns = 1}}) {
      block_report report;
      const auto got = attend<Element, Dim, Tiles>(from, many, o, report);
      const auto first = got.begin() + static_cast<std::ptrdiff_t>(17 * want.size());
      CHECK(
          twill::test::same_bits(want, {first, first + static_cast<std::ptrdiff_t>(want.size())}));
    }
  };
  compare.operator()<kv_f16, 64, 1>({});
  compare.operator()<kv_bf16, 64, 2>({.n_heads = 9, .window = 500});
  compare.operator()<kv_i8, 64, 1>({.alibi = true});
  compare.operator()<float, 64, 2>({.n_heads = 9, .window = 500, .alibi = true});
}

TEST_CASE("cuda decode attention rounds outputs of 16 bits once, emulated") {
  sequences<kv_f16, 64> from({}, {300});
  const std::vector<asked> row = {{0, 299}};
  block_report report;
  for (const int splits : {1, 2})
    for (const dtype type : {dtype::f16, dtype::bf16}) {
      CAPTURE(splits, type == dtype::f16);
      auto want = attend<kv_f16, 64, 1>(from, row, {.splits = splits}, report);
      for (float& x : want)
        x = type == dtype::f16 ? detail::f16_to_f32(detail::f32_to_f16(x))
                               : detail::bf16_to_f32(detail::f32_to_bf16(x));
      const auto got =
          attend<kv_f16, 64, 1>(from, row, {.splits = splits, .out_type = type}, report);
      CHECK(twill::test::same_bits(want, got));
    }
}

TEST_CASE("what a row of cuda decode attention does not see may be anything, emulated") {
  const auto compare = []<class Element>(const Element& nan, const Element& infinity) {
    CAPTURE(kv_element<Element>::key);
    sequences<Element, 64> from({.window = 100}, {300});
    const std::vector<asked> row = {{0, 250}}; // 49 positions are stored behind it
    const auto want = check<Element, 64, 1>(from, row);
    for (const int position : {0, 150, 251, 299}) {
      const auto at = from.place_of(0, position, 0);
      for (int d = 0; d < 64; ++d) {
        from.keys.data()[at.key + d * from.s.block_tokens] = nan;
        from.values.data()[at.value + d] = infinity;
      }
    }
    CHECK(twill::test::same_bits(want, check<Element, 64, 1>(from, row)));
    // And what it sees shows.
    from.values.data()[from.place_of(0, 200, 0).value] = nan;
    block_report report;
    CHECK(std::isnan(attend<Element, 64, 1>(from, row, {}, report)[0]));
  };
  compare(kv_f16{0x7e00}, kv_f16{0x7c00});
  compare(NAN, INFINITY);
}

TEST_CASE("cuda decode attention counts in 64 bits, emulated") {
  // Arenas of 30 GB and more, of which a few blocks are touched.
  check_shape<kv_f16, 128>({.n_heads = 16, .n_kv_heads = 8, .block_step = 200000}, {70});
  check_shape<float, 128>({.n_heads = 16, .n_kv_heads = 8, .block_step = 200000}, {70});
  check_shape<kv_i8, 64>({.block_step = 20000000}, {70});
  check_shape<kv_bf16, 64>({.apart = std::int64_t{1} << 34, .scale_apart = std::int64_t{1} << 32},
                           {70});
  check_shape<kv_i8, 64>({.apart = std::int64_t{1} << 34, .scale_apart = std::int64_t{1} << 32},
                         {70});
  // Positions up to the last whose count is an int, in tables of 2^27 blocks and more.
  constexpr std::int32_t last = 0x7fffffff;
  for (const int splits : {1, 2}) {
    check_shape<kv_f16, 64>({.window = 300, .alibi = true, .start = last - 527}, {527, 526, 525},
                            {.splits = splits, .spare_columns = 1 << 30});
    check_shape<kv_i8, 64>({.window = 1, .start = last - 527}, {527}, {.splits = splits});
    // Rows, and results of chunks, that lie far from the first.
    check_shape<kv_f16, 64>({}, {70, 7}, {.splits = splits, .first_row = 1 << 26});
    check_shape<kv_f16, 64>({}, {600, 7}, {.splits = splits, .spare_chunks = 1 << 29});
  }
}
