#include "gpu/attention/cuda/prefill_attention.hpp"

#include "gpu/attention/cuda/plan.hpp"
#include "tests/gpu/cuda/attention_case.hpp"

using namespace twill::test;

namespace {

/// Rows of a step: positions [past, past + n) of a sequence.
struct piece {
  std::size_t sequence;
  int past, n;
};
struct prefill_options {
  std::int32_t least_rows = 1;
  bool grid = false; ///< emulate all blocks together, by run_grid()
  bool order_records = false;
  int spare_columns = 0;  ///< unused columns of the block table
  bool backwards = false; ///< the rows are reversed; the step must have one sequence
  dtype out_type = dtype::f32;
};

std::vector<asked> rows_of(const std::vector<piece>& step) {
  std::vector<asked> rows;
  for (const piece& one : step)
    for (int i = 0; i < one.n; ++i)
      rows.push_back({one.sequence, one.past + i});
  return rows;
}

/// Prefill attention of a step; outputs of 16 bits are widened.
template <class Element, int Dim>
std::vector<float> prefill(sequences<Element, Dim>& from, const std::vector<piece>& step,
                           const prefill_options& o, block_report& report) {
  using kernel_shape = cuda::prefill_shape<Element, Dim>;
  const attention_shape& s = from.s;
  const std::int64_t width = std::int64_t{s.n_heads} * Dim;
  const std::int64_t first_column = s.start / s.block_tokens;
  std::int64_t columns = first_column + 1;
  for (const auto& t : from.tables)
    columns = std::max(columns, first_column + static_cast<std::int64_t>(t.size()));
  columns += o.spare_columns;
  const auto n_sequences = static_cast<std::int64_t>(step.size());
  std::vector<asked> rows = rows_of(step);
  if (o.backwards) std::reverse(rows.begin(), rows.end());
  const auto n = static_cast<std::int64_t>(rows.size());
  const arena<std::int32_t> table(n_sequences * columns), first_token(n_sequences + 1),
      positions(n);
  const arena<float> q(n * width), out(n * width);
  const arena<std::uint16_t> halves(n * width);
  first_token[0] = 0;
  for (std::int64_t i = 0; i < n_sequences; ++i) {
    const piece& one = step[static_cast<std::size_t>(i)];
    first_token[i + 1] = first_token[i] + one.n;
    std::copy(from.tables[one.sequence].begin(), from.tables[one.sequence].end(),
              table.data() + i * columns + first_column);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const asked& row = rows[static_cast<std::size_t>(i)];
    positions[i] = s.start + row.position;
    std::copy_n(from.q[row.sequence].data() + row.position * width, width, q.data() + i * width);
    std::fill_n(out.data() + i * width, width, NAN);
  }
  cuda::prefill_attention_args args{};
  args.q = q.data();
  args.q_stride = width;
  args.out = {o.out_type == dtype::f32 ? static_cast<void*>(out.data()) : halves.data(), o.out_type,
              width};
  args.kv = from.layer();
  args.group = s.n_heads / s.n_kv_heads;
  args.n_sequences = static_cast<std::int32_t>(n_sequences);
  args.tiles = static_cast<std::int32_t>(cuda::prefill_tiles(n, n_sequences, args.group));
  args.least_rows = o.least_rows;
  args.scale = 1 / std::sqrt(static_cast<float>(Dim));
  args.window = s.window;
  args.slopes = s.alibi ? from.slopes.data() : nullptr;
  args.max_blocks = static_cast<std::int32_t>(columns);
  args.positions = positions.data();
  args.first_token = first_token.data();
  args.block_table = table.data();
  grid_shape grid;
  grid.blocks = args.tiles * s.n_kv_heads;
  grid.seed = 5;
  grid.block.threads = kernel_shape::threads;
  grid.block.shared_bytes = kernel_shape::shared_bytes;
  grid.block.order_records = o.order_records;
  grid.block.global = {{from.slopes.data(), from.slopes.size() * sizeof(float), false},
                       from.keys.range(false),
                       from.values.range(false),
                       from.key_scales.range(false),
                       from.value_scales.range(false),
                       q.range(false),
                       positions.range(false),
                       first_token.range(false),
                       table.range(false),
                       out.range(true),
                       halves.range(true)};
  const auto body = [&](emulated_ptx ptx) {
    cuda::prefill_attention<Element, Dim, emulated_ptx>(ptx, args).run();
  };
  if (o.grid) {
    report = run_grid(grid, body);
  } else {
    report = {};
    for (int b = 0; b < grid.blocks; ++b) {
      grid.block.index = b;
      const block_report one = run_block(grid.block, body);
      report.bank_conflicts += one.bank_conflicts;
      report.shared_accesses += one.shared_accesses;
    }
  }
  std::vector<float> got;
  for (std::int64_t i = 0; i < n * width; ++i)
    got.push_back(o.out_type == dtype::f32   ? out[i]
                  : o.out_type == dtype::f16 ? detail::f16_to_f32(halves[i])
                                             : detail::bf16_to_f32(halves[i]));
  return got;
}

/// Compares a step with the oracle, and checks that shared memory has no bank conflicts.
template <class Element, int Dim>
std::vector<float> check(sequences<Element, Dim>& from, const std::vector<piece>& step,
                         const prefill_options& o = {}) {
  block_report report;
  const std::vector<float> got = prefill<Element, Dim>(from, step, o, report);
  CHECK(report.bank_conflicts == 0);
  CHECK(report.shared_accesses > 0);
  CHECK(wrong_outputs(from, rows_of(step), got) == 0);
  return got;
}

/// Checks that a step has decode attention's bits, and its order of sums.
template <class Element, int Dim>
void compare(sequences<Element, Dim>& from, const std::vector<piece>& step,
             prefill_options o = {}) {
  constexpr int heads = cuda::decode_tile_heads;
  for (const bool order_records : {false, true}) {
    CAPTURE(order_records);
    block_report report;
    const options alone{.spare_columns = o.spare_columns, .order_records = order_records};
    o.order_records = order_records;
    const std::vector<float> got = prefill<Element, Dim>(from, step, o, report);
    CHECK(report.bank_conflicts == 0);
    const std::vector<float> want =
        from.s.n_heads / from.s.n_kv_heads <= heads
            ? decode<Element, Dim, 1>(from, rows_of(step), alone, report)
            : decode<Element, Dim, 2>(from, rows_of(step), alone, report);
    int different = 0;
    for (std::size_t i = 0; i < want.size(); ++i)
      different += std::memcmp(&want[i], &got[i], sizeof(float)) != 0;
    CHECK(want.size() == got.size());
    CHECK(different == 0);
  }
}

template <class Element, int Dim>
void check_shape(const attention_shape& s, const std::vector<piece>& step) {
  CAPTURE(kv_element<Element>::key, Dim, s.n_heads, s.n_kv_heads, s.block_tokens, s.window, s.alibi,
          s.key_size, s.value_size, s.query_size);
  std::vector<int> lengths;
  for (const piece& one : step)
    lengths.push_back(one.past + one.n + 1); // a position behind them is stored
  sequences<Element, Dim> from(s, lengths);
  check(from, step);
}

} // namespace

TEST_CASE("cuda prefill attention agrees with a naive oracle over shapes, emulated") {
  const auto check_group = []<class Element, int Dim>(int group, int block_tokens) {
    const attention_shape s{.n_heads = 2 * group, .n_kv_heads = 2, .block_tokens = block_tokens};
    check_shape<Element, Dim>(s, {{0, 0, 40 / group + 3}, {1, 70, 2}});
  };
  check_group.operator()<kv_f16, 64>(1, 8);
  check_group.operator()<kv_f16, 80>(2, 16);
  check_group.operator()<kv_f16, 96>(4, 32);
  check_group.operator()<kv_f16, 128>(5, 8);
  check_group.operator()<kv_bf16, 64>(7, 16);
  check_group.operator()<kv_bf16, 80>(8, 32);
  check_group.operator()<kv_bf16, 96>(16, 8);
  check_group.operator()<kv_bf16, 128>(1, 16);
  check_group.operator()<kv_i8, 64>(4, 16);
  check_group.operator()<kv_i8, 80>(5, 32);
  check_group.operator()<kv_i8, 96>(7, 16);
  check_group.operator()<kv_i8, 128>(8, 32);
}

TEST_CASE("a row of cuda prefill attention has decode attention's bits, emulated") {
  const auto compare_shape = []<class Element, int Dim>(attention_shape s, int length) {
    CAPTURE(kv_element<Element>::key, Dim, s.n_heads, s.n_kv_heads, s.window, s.alibi);
    s.query_size = 0.05f; // with records of order as scores, all softmax weights still count
    sequences<Element, Dim> from(s, {length, 9, 262});
    compare(from, {{0, length - 6, 6}, {1, 0, 9}, {2, 252, 10}});
  };
  compare_shape.operator()<kv_f16, 64>({.n_heads = 5}, 300);
  compare_shape.operator()<kv_f16, 80>({.n_heads = 7, .block_tokens = 8}, 530);
  compare_shape.operator()<kv_f16, 96>({.n_heads = 4, .n_kv_heads = 2}, 300);
  compare_shape.operator()<kv_f16, 128>({.n_heads = 8, .block_tokens = 32}, 300);
  compare_shape.operator()<kv_bf16, 64>({.n_heads = 16, .alibi = true}, 300);
  compare_shape.operator()<kv_bf16, 80>({.n_heads = 6, .n_kv_heads = 3, .window = 100}, 530);
  compare_shape.operator()<kv_bf16, 96>({.n_heads = 1, .block_tokens = 8, .window = 258}, 530);
  compare_shape.operator()<kv_bf16, 128>({.n_heads = 5, .window = 1}, 300);
  compare_shape.operator()<kv_i8, 64>({.n_heads = 4, .n_kv_heads = 2, .alibi = true}, 300);
  compare_shape.operator()<kv_i8, 80>({.n_heads = 7, .window = 259}, 530);
  compare_shape.operator()<kv_i8, 96>({.n_heads = 8, .block_tokens = 32, .window = 40}, 300);
  compare_shape.operator()<kv_i8, 128>({.n_heads = 2, .window = 300, .alibi = true}, 600);
}

TEST_CASE("cuda prefill attention takes windows and ALiBi, emulated") {
  for (const std::int32_t window : {1, 2, 40, 64, 255, 256, 258, 300}) {
    const attention_shape s{.n_heads = 4, .window = window, .alibi = window % 2 == 0};
    const std::vector<piece> step = {{0, 0, 30}, {1, 245, 30}, {2, 510, 9}};
    check_shape<kv_f16, 64>(s, step);
    check_shape<kv_bf16, 64>(s, step);
    check_shape<kv_i8, 64>(s, step);
  }
  // A tile in which rows far apart have no position in common.
  check_shape<kv_f16, 64>({.n_heads = 1, .window = 3}, {{0, 240, 48}});
  check_shape<kv_i8, 64>({.n_heads = 1, .window = 3}, {{0, 240, 48}});
}

TEST_CASE("cuda prefill attention keeps its accuracy over magnitudes, emulated") {
  const std::vector<piece> step = {{0, 60, 10}};
  for (const float size : {1e-4f, 30.0f, 1e4f}) {
    check_shape<kv_f16, 64>({.value_size = size}, step);
    check_shape<kv_f16, 64>({.key_size = size, .query_size = 1 / size}, step);
    check_shape<kv_bf16, 64>({.key_size = size, .query_size = 1 / size}, step);
    check_shape<kv_i8, 64>({.key_size = size, .value_size = size, .query_size = 1 / size}, step);
  }
  check_shape<kv_f16, 64>({.key_size = 1e-2f, .query_size = 1e5f}, step);
  check_shape<kv_bf16, 64>({.key_size = 1e5f, .value_size = 1e30f, .query_size = 1e-5f}, step);
  check_shape<kv_i8, 64>({.key_size = 1e30f, .value_size = 1e30f, .query_size = 1e-30f}, step);
  check_shape<kv_i8, 64>({.key_size = 1e-25f, .value_size = 1e-25f, .query_size = 1e25f}, step);
}

TEST_CASE("cuda prefill attention has the same bits however prompts are cut, emulated") {
  const auto cut = []<class Element>(const attention_shape& s) {
    CAPTURE(kv_element<Element>::key, s.window);
    sequences<Element, 64> from(s, {120, 300, 1});
    const auto part = [&](const std::vector<float>& all, std::size_t first, std::size_t n) {
      const auto width = static_cast<std::size_t>(s.n_heads) * 64;
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first * width);
      return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(n * width));
    };
    const std::vector<float> whole = check(from, {{0, 0, 120}, {1, 280, 20}});
    block_report report;
    const auto first = prefill(from, {{0, 0, 1}, {2, 0, 1}, {1, 280, 5}}, {}, report);
    const auto second = prefill(from, {{1, 285, 15}, {0, 1, 119}}, {.grid = true}, report);
    CHECK(same_bits(part(whole, 0, 1), part(first, 0, 1)));
    CHECK(same_bits(part(whole, 120, 5), part(first, 2, 5)));
    CHECK(same_bits(part(whole, 125, 15), part(second, 0, 15)));
    CHECK(same_bits(part(whole, 1, 119), part(second, 15, 119)));
  };
  cut.operator()<kv_f16>({.n_heads = 5});
  cut.operator()<kv_i8>({.n_heads = 2, .window = 60, .alibi = true});
}

TEST_CASE("cuda prefill attention takes rows in any order of positions, emulated") {
  sequences<kv_f16, 64> from({.n_heads = 1, .window = 20}, {300});
  const std::vector<piece> step = {{0, 230, 60}};
  auto want = check(from, step);
  block_report report;
  const auto got = prefill(from, step, {.backwards = true}, report);
  for (std::size_t i = 0; i < want.size(); i += 64)
    std::reverse(want.begin() + static_cast<std::ptrdiff_t>(i),
                 want.begin() + static_cast<std::ptrdiff_t>(i + 64));
  std::reverse(want.begin(), want.end());
  CHECK(same_bits(want, got));
}

TEST_CASE("cuda prefill attention finds the tiles of many sequences, emulated") {
  // The step has more sequences than a warp has threads, and some have no rows in it.
  const attention_shape s{.n_heads = 3, .n_kv_heads = 1};
  std::vector<int> lengths(41, 20);
  sequences<kv_f16, 64> from(s, lengths);
  std::vector<piece> step;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    step.push_back({i, 0, static_cast<int>(i % 7 * 3)});
  check(from, step);
  // Sequences with fewer than `least_rows` rows are left out.
  block_report report;
  const auto all = prefill(from, step, {}, report);
  const auto some = prefill(from, step, {.least_rows = 6}, report);
  std::size_t at = 0;
  for (const piece& one : step)
    for (std::size_t i = 0; i < static_cast<std::size_t>(one.n) * 3 * 64; ++i, ++at)
      if (one.n < 6 ? !std::isnan(some[at]) : some[at] != all[at]) {
        FAIL_CHECK("row of a sequence with " << one.n << " rows");
        return;
      }
}

TEST_CASE("cuda prefill attention rounds outputs of 16 bits once, emulated") {
  sequences<kv_f16, 64> from({}, {300});
  const std::vector<piece> step = {{0, 290, 10}};
  block_report report;
  for (const dtype type : {dtype::f16, dtype::bf16}) {
    CAPTURE(type == dtype::f16);
    auto want = prefill(from, step, {}, report);
    for (float& x : want)
      x = type == dtype::f16 ? detail::f16_to_f32(detail::f32_to_f16(x))
                             : detail::bf16_to_f32(detail::f32_to_bf16(x));
    CHECK(same_bits(want, prefill(from, step, {.out_type = type}, report)));
  }
}

TEST_CASE("what no row of a cuda prefill attention tile sees may be anything, emulated") {
  const auto try_with = []<class Element>(const Element& nan, const Element& infinity) {
    CAPTURE(kv_element<Element>::key);
    sequences<Element, 64> from({.window = 100}, {300});
    const std::vector<piece> step = {{0, 240, 11}}; // 49 positions are stored behind it
    const auto want = check(from, step);
    for (const int position : {0, 140, 251, 299}) {
      const auto at = from.place_of(0, position, 0);
      for (int d = 0; d < 64; ++d) {
        from.keys.data()[at.key + d * from.s.block_tokens] = nan;
        from.values.data()[at.value + d] = infinity;
      }
      from.key_scales.data()[at.scale] = from.value_scales.data()[at.scale] = NAN;
    }
    CHECK(same_bits(want, check(from, step)));
    // NaN in a position that only the last row sees must not change the rows before it.
    const auto last = from.place_of(0, 250, 0);
    for (int d = 0; d < 64; ++d)
      from.keys.data()[last.key + d * from.s.block_tokens] = nan;
    from.key_scales.data()[last.scale] = from.value_scales.data()[last.scale] = NAN;
    block_report report;
    const auto got = prefill(from, step, {}, report);
    const auto before_last = static_cast<std::ptrdiff_t>(want.size() / 11 * 10);
    CHECK(same_bits({want.begin(), want.begin() + before_last},
                    {got.begin(), got.begin() + before_last}));
    CHECK(std::isnan(got.back()));
  };
  try_with(kv_f16{0x7e00}, kv_f16{0x7c00});
  try_with(kv_bf16{0x7fc0}, kv_bf16{0x7f80});
  try_with(kv_i8{-128}, kv_i8{-128});
}

TEST_CASE("cuda prefill attention counts in 64 bits, emulated") {
  // Arenas of 30 GB and more, of which a few blocks are touched.
  const std::vector<piece> step = {{0, 60, 4}};
  check_shape<kv_f16, 128>({.n_heads = 16, .n_kv_heads = 8, .block_step = 200000}, step);
  check_shape<kv_i8, 64>({.block_step = 20000000}, step);
  check_shape<kv_bf16, 64>({.apart = std::int64_t{1} << 34, .scale_apart = std::int64_t{1} << 32},
                           step);
  check_shape<kv_i8, 64>({.apart = std::int64_t{1} << 34, .scale_apart = std::int64_t{1} << 32},
                         step);
  // Positions up to the last whose count is an int, in tables of 2^27 blocks and more.
  constexpr std::int32_t last = 0x7fffffff;
  sequences<kv_f16, 64> near_end({.window = 300, .alibi = true, .start = last - 527}, {527});
  check(near_end, {{0, 490, 37}}, {.spare_columns = 1 << 30});
  sequences<kv_i8, 64> last_row({.window = 1, .start = last - 527}, {527});
  check(last_row, {{0, 525, 2}});
}
