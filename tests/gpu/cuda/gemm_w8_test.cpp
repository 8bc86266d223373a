#include "tests/catch.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <vector>

#include "gpu/linear/cuda/to_16_bits.hpp"
#include "tests/gpu/cuda/gemm_harness.hpp"

using namespace twill::gpu;
using namespace twill::gpu::test;

namespace {

/// An 8-bit weight matrix, in which each group of `group` columns of a row has a scale and an
/// offset: a weight is scale * code + offset. If `zero_32` is set, all groups have the zero point
/// 32 and scales in f32, as in Q6_K; otherwise the offsets are random, and related to the scales as
/// `form` says.
struct u8_case {
  std::int32_t group;
  offsets form;
  bool zero_32 = false;
};
constexpr u8_case all_u8[] = {
    {128, offsets::zero_points},    {64, offsets::factored},    {192, offsets::zero_points},
    {32, offsets::factored},        {96, offsets::zero_points}, {64, offsets::zero_points_f32},
    {32, offsets::zero_points_f32}, {128, offsets::stored_f16}, {32, offsets::stored_f16},
    {32, offsets::stored_f32},      {64, offsets::stored_f32},  {16, offsets::stored_f32, true},
    {16, offsets::zero_points_f32}, {16, offsets::zero_points}, {16, offsets::factored},
    {32, offsets::stored_f32, true}};

matrix matrix_of(const u8_case& u8, std::int64_t rows, std::int64_t cols) {
  matrix w = random_matrix(weight_kind::grouped_u8, rows, cols, u8.group, u8.form, 2);
  for (std::size_t g = 0; g < w.scales.size(); ++g) {
    if (u8.zero_32) set_zero(w, g, 32);
    // Where 255 * scale rounds up in f32, packing no longer finds the zero point 255.
    if (u8.form == offsets::zero_points_f32 && w.group_offsets[g] < -254.5F * w.scales[g])
      set_zero(w, g, 254);
  }
  return w;
}

} // namespace

TEST_CASE("cuda products of 8-bit weights agree with a naive product, emulated") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  const u8_case u8 = GENERATE(from_range(std::begin(all_u8), std::end(all_u8)));
  struct shape {
    std::int64_t rows, groups, m;
  };
  for (const auto& [rows, groups, m] :
       {shape{1, 2, 1}, shape{33, 6, 3}, shape{70, 2, 17}, shape{32, 18, 8}, shape{20, 4, 11}})
    for (const bool bf16 : {false, true}) {
      const std::int64_t cols = groups * u8.group;
      CAPTURE(u8.group, static_cast<int>(u8.form), u8.zero_32, rows, cols, m, bf16);
      const matrix w = matrix_of(u8, rows, cols);
      const auto packed = pack(*dev, w.source(), "w").value();
      check_product(w, packed.get().view, m, bf16);
    }
}

TEST_CASE("cuda products of 8-bit weights take any number of rows, emulated") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  for (const std::int32_t group : {16, 32}) {
    const matrix w = matrix_of({group, offsets::zero_points_f32}, 35, 96);
    const auto packed = pack(*dev, w.source(), "w").value();
    for (std::int64_t m = 1; m <= 64; m += m == 17 ? 14 : m == 33 ? 30 : 1) {
      CAPTURE(group, m);
      call c = random_call(packed.get().view, m, m % 2 == 0);
      c.pairs = 1;
      emulate(packed.get().view, c);
      check(c, exact(w, c.x, m, compute_type::f32));
    }
  }
}

TEST_CASE("cuda products of 8-bit weights sum a row in one order, alone and among any, emulated") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  const auto which = GENERATE(range(std::size_t{0}, std::size(all_u8)));
  const u8_case& u8 = all_u8[which];
  const bool bf16 = which % 2 == 1;
  const std::int64_t rows = 32, cols = 1152; // 18 segments of 64: eight slices, two of them empty
  CAPTURE(u8.group, static_cast<int>(u8.form), u8.zero_32, bf16);
  const matrix w = matrix_of(u8, rows, cols);
  const auto packed = pack(*dev, w.source(), "w").value();
  check_order(packed.get().view, 64, bf16);
}

// Row r of the activations is 1 in column r and 0 elsewhere, so each output is one weight, which is
// scale * (code - zero point). All pairs of the 256 codes and the 256 zero points occur.
TEST_CASE("cuda products make every 8-bit code minus every zero point exactly, emulated") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  const std::int32_t group = GENERATE(16, 32);
  const bool bf16 = GENERATE(false, true);
  const bool f32_scales = GENERATE(false, true);
  CAPTURE(group, bf16, f32_scales);
  const std::int64_t cols = 32, rows = 256 * 256 / cols;
  const float scale = f32_scales ? 1 + 0x1p-23F : 1;
  matrix w = random_matrix(weight_kind::grouped_u8, rows, cols, group, offsets::zero_points, 3);
  std::fill(w.scales.begin(), w.scales.end(), scale);
  for (std::size_t i = 0; i < w.codes.size(); ++i)
    w.codes[i] = static_cast<std::uint8_t>(i);
  for (std::size_t g = 0; g < w.scales.size(); ++g)
    set_zero(w, g, static_cast<int>(g * static_cast<std::size_t>(group) / 256));
  const auto packed = pack(*dev, w.source(), "w").value();
  const detail::packed_view& view = packed.get().view;
  REQUIRE((view.zero_points && view.scales_f16 == !f32_scales));
  call c = random_call(view, cols, bf16);
  for (std::int64_t r = 0; r < cols; ++r)
    for (std::int64_t k = 0; k < cols; ++k)
      c.x[static_cast<std::size_t>(r * cols + k)] = r == k ? 1.0F : 0.0F;
  emulate(view, c);
  int wrong = 0;
  for (std::int64_t r = 0; r < cols; ++r)
    for (std::int64_t n = 0; n < rows; ++n) {
      const auto i = n * cols + r;
      const auto difference = static_cast<float>(i % 256 - i / 256);
      wrong += c.out[static_cast<std::size_t>(r * rows + n)] != scale * difference;
    }
  CHECK(wrong == 0);
}

TEST_CASE("cuda products of 8-bit weights take one zero point for all, up to 255, emulated") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  for (const std::int32_t group : {16, 64})
    for (const int zero : {0, 1, 16, 128, 255})
      for (const bool bf16 : {false, true}) {
        CAPTURE(group, zero, bf16);
        matrix w = matrix_of({group, offsets::factored}, 20, 128);
        for (std::size_t g = 0; g < w.scales.size(); ++g)
          set_zero(w, g, zero);
        const auto packed = pack(*dev, w.source(), "w").value();
        REQUIRE(packed.get().view.offset_factor == -zero);
        call c = random_call(packed.get().view, 2, bf16);
        emulate(packed.get().view, c);
        check(c, exact(w, c.x, 2, compute_type::f32));
      }
}

TEST_CASE("cuda products of 8-bit weights take strided rows, bias and what is there, emulated") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  for (const std::int32_t group : {16, 64})
    for (const bool bf16 : {false, true}) {
      const matrix w = matrix_of({group, offsets::zero_points}, 37, 256);
      check_strided(w, pack(*dev, w.source(), "w").value().get().view, 9, bf16);
    }
}

TEST_CASE("cuda products of 8-bit weights take columns in another order, emulated") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  const std::int64_t rows = 20, cols = 128, m = 3;
  const matrix w = matrix_of({32, offsets::zero_points}, rows, cols);
  auto order = std::make_shared<std::vector<std::int32_t>>();
  for (std::int32_t k = 0; k < cols; ++k)
    order->push_back((k * 37 + 11) % static_cast<std::int32_t>(cols));
  weight_source source = w.source();
  source.column_order = order;
  const auto packed = pack(*dev, source, "w").value();
  call c = random_call(packed.get().view, m, false);
  const oracle want = exact(w, c.x, m, compute_type::f32);
  // Column c of the weights multiplies column order[c] of the activations.
  std::vector<float> given(c.x.size());
  for (std::size_t i = 0; i < given.size(); ++i)
    given[i / cols * cols + static_cast<std::size_t>((*order)[i % cols])] = c.x[i];
  std::vector<std::uint16_t> to(given.size());
  const cuda::to_16_bits_args args{.x = given.data(),
                                   .x_stride = cols,
                                   .order = packed.get().column_order(),
                                   .to = to.data(),
                                   .m = static_cast<int>(m),
                                   .cols = static_cast<int>(cols)};
  twill::test::run_grid({.blocks = static_cast<int>(cuda::to_16_bits_blocks(args)),
                         .block = {.threads = cuda::to_16_bits_threads,
                                   .global = {{given.data(), given.size() * 4, false},
                                              {args.order, order->size() * 4, false},
                                              {to.data(), to.size() * 2, true}}}},
                        [&](emulated_ptx ptx) {
                          cuda::to_16_bits<float, false, emulated_ptx>{ptx, args}.run();
                        });
  for (std::size_t i = 0; i < to.size(); ++i)
    c.x[i] = detail::f16_to_f32(to[i]);
  emulate(packed.get().view, c);
  check(c, want);
}

TEST_CASE("cuda products of 8-bit weights keep activations that f16 has no room for, emulated") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  for (const u8_case u8 : {u8_case{32, offsets::stored_f32}, u8_case{16, offsets::zero_points}}) {
    const matrix w = matrix_of(u8, 32, 256);
    check_large(w, pack(*dev, w.source(), "w").value().get().view);
  }
}

TEST_CASE("cuda products leave 8-bit weights of other groups and formats to the portable ops") {
  const detail::packed_view good{
      .kind = weight_kind::grouped_u8, .offset_factor = -128, .group = 32};
  CHECK(cuda::gemm_w8_takes(good));
  const auto takes = [&](auto change) {
    detail::packed_view w = good;
    change(w);
    return cuda::gemm_w8_takes(w);
  };
  using view = detail::packed_view;
  for (const std::int32_t group : {8, 24, 40, 48, 80})
    CHECK_FALSE(takes([&](view& w) { w.group = group; }));
  for (const std::int32_t group : {16, 64, 96, 128, 4096})
    CHECK(takes([&](view& w) { w.group = group; }));
  CHECK(takes([](view& w) { w.offset_factor = -255; }));
  CHECK(takes([](view& w) { w.offset_factor = 0; }));
  CHECK_FALSE(takes([](view& w) { w.offset_factor = -256; }));
  CHECK_FALSE(takes([](view& w) { w.offset_factor = 1; }));
  CHECK(takes([](view& w) { w.offsets_stored = true; }));
  CHECK(takes([](view& w) { w.group = 16, w.offsets_stored = w.zero_points = true; }));
  CHECK_FALSE(takes([](view& w) { w.group = 16, w.offsets_stored = true; }));
  CHECK_FALSE(takes([](view& w) { w.int16_quant_params = true; }));
  for (const weight_kind kind :
       {weight_kind::f16, weight_kind::grouped_u4, weight_kind::grouped_u4_as_u8})
    CHECK_FALSE(takes([&](view& w) { w.kind = kind; }));
}
