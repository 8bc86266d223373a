#include "tests/gpu/cuda/attention_case.hpp"

using namespace twill::test;

namespace {

/// Compares rows with the oracle, and checks that shared memory has no bank conflicts.
template <class Element, int Dim, int Tiles>
std::vector<float> check(sequences<Element, Dim>& from, const std::vector<asked>& rows,
                         const options& o = {}) {
  block_report report;
  const std::vector<float> got = decode<Element, Dim, Tiles>(from, rows, o, report);
  CHECK(report.bank_conflicts == 0);
  CHECK(report.shared_accesses > 0);
  CHECK(wrong_outputs(from, rows, got) == 0);
  return got;
}

template <class Element, int Dim, int Tiles = 1>
void check_shape(const attention_shape& s, const std::vector<int>& lengths, const options& o = {}) {
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
  const auto compare = []<class Element, int Dim, int Tiles>(const attention_shape& s) {
    CAPTURE(kv_element<Element>::key, Dim, Tiles, s.window);
    sequences<Element, Dim> from(s, {700, 1, 100, 300});
    const std::vector<asked> alone = {{0, 699}};
    const std::vector<float> want = check<Element, Dim, Tiles>(from, alone);
    for (const options& o : {options{.splits = 2}, options{.splits = 3, .spare_columns = 30},
                             options{.splits = 7, .grid = true}}) {
      CAPTURE(o.splits);
      CHECK(same_bits(want, check<Element, Dim, Tiles>(from, alone, o)));
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
      const auto got = decode<Element, Dim, Tiles>(from, many, o, report);
      const auto first = got.begin() + static_cast<std::ptrdiff_t>(17 * want.size());
      CHECK(same_bits(want, {first, first + static_cast<std::ptrdiff_t>(want.size())}));
    }
  };
  compare.operator()<kv_f16, 64, 1>({});
  compare.operator()<kv_bf16, 64, 2>({.n_heads = 9, .window = 500});
  compare.operator()<kv_i8, 64, 1>({.alibi = true});
  compare.operator()<float, 64, 2>({.n_heads = 9, .window = 500, .alibi = true});
}

TEST_CASE("cuda decode attention computes the rows that are alone in their sequences, emulated") {
  sequences<kv_f16, 64> from({}, {300, 90});
  const std::vector<asked> rows = {{0, 299}, {1, 50}, {1, 51}, {1, 52}, {1, 89}};
  block_report report;
  for (const int splits : {1, 2}) {
    const auto all = decode<kv_f16, 64, 1>(from, rows, {.splits = splits}, report);
    // Sequences of one row, none, three rows and one row.
    const auto some = decode<kv_f16, 64, 1>(
        from, rows, {.splits = splits, .first_token = {0, 1, 1, 4, 5}}, report);
    const std::size_t width = all.size() / rows.size();
    int wrong = 0;
    for (std::size_t i = 0; i < all.size(); ++i)
      wrong += i < width || i >= 4 * width ? some[i] != all[i] : !std::isnan(some[i]);
    CHECK(wrong == 0);
  }
}

TEST_CASE("cuda decode attention rounds outputs of 16 bits once, emulated") {
  sequences<kv_f16, 64> from({}, {300});
  const std::vector<asked> row = {{0, 299}};
  block_report report;
  for (const int splits : {1, 2})
    for (const dtype type : {dtype::f16, dtype::bf16}) {
      CAPTURE(splits, type == dtype::f16);
      auto want = decode<kv_f16, 64, 1>(from, row, {.splits = splits}, report);
      for (float& x : want)
        x = type == dtype::f16 ? detail::f16_to_f32(detail::f32_to_f16(x))
                               : detail::bf16_to_f32(detail::f32_to_bf16(x));
      const auto got =
          decode<kv_f16, 64, 1>(from, row, {.splits = splits, .out_type = type}, report);
      CHECK(same_bits(want, got));
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
    CHECK(same_bits(want, check<Element, 64, 1>(from, row)));
    // NaN in a position that the row does see reaches the output.
    from.values.data()[from.place_of(0, 200, 0).value] = nan;
    block_report report;
    CHECK(std::isnan(decode<Element, 64, 1>(from, row, {}, report)[0]));
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
    // Rows, and results of chunks, whose offsets in their arrays exceed 32 bits.
    check_shape<kv_f16, 64>({}, {70, 7}, {.splits = splits, .first_row = 1 << 26});
    check_shape<kv_f16, 64>({}, {600, 7}, {.splits = splits, .spare_chunks = 1 << 29});
  }
}
