#include "tests/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <vector>

#include "gpu/detail/kernel_math.hpp"
#include "tests/gpu/cuda/gemm_harness.hpp"

using namespace twill::gpu;
using namespace twill::gpu::test;

namespace {

/// An 8-bit weight matrix, in which each group of `group` columns of a row has a scale and an
/// offset: a weight is scale * code + offset. If `zero` is not negative, it is the zero point of
/// all groups; otherwise the offsets are random, and related to the scales as `form` says.
struct i8_case {
  std::int32_t group;
  offsets form;
  int zero = -1;
  int columns; ///< columns of activations that share a scale
};
constexpr i8_case all_i8[] = {
    {256, offsets::stored_f16, 128, 128},   {128, offsets::factored, -1, 128},
    {384, offsets::stored_f32, 128, 128},   {192, offsets::factored, -1, 64},
    {64, offsets::stored_f32, 0, 64},       {32, offsets::factored, -1, 32},
    {96, offsets::stored_f32, 255, 32},     {128, offsets::zero_points, -1, 32},
    {64, offsets::zero_points_f32, -1, 32}, {64, offsets::stored_f16, -1, 32},
    {128, offsets::stored_f32, -1, 32},
};

matrix matrix_of(const i8_case& i8, std::int64_t rows, std::int64_t cols) {
  matrix w = random_matrix(weight_kind::grouped_u8, rows, cols, i8.group, i8.form, 2);
  for (std::size_t g = 0; g < w.scales.size(); ++g) {
    if (i8.zero >= 0) set_zero(w, g, i8.zero);
    // Where 255 * scale rounds up in f32, packing no longer finds the zero point 255.
    if (i8.form == offsets::zero_points_f32 && w.group_offsets[g] < -254.5F * w.scales[g])
      set_zero(w, g, 254);
  }
  return w;
}

call int8_call(const detail::packed_view& w, std::int64_t m) {
  call c = random_call(w, m, false);
  c.x = spiky_floats(m * w.cols, 5); // not rounded to f16
  c.int8 = true;
  return c;
}

/// The exact product of what to_8_bits makes of the activations, and how far f32 sums may be off.
oracle product_of_codes(const matrix& w, const detail::packed_view& packed, const call& c) {
  cuda::gemm_args args{};
  const activations x = codes_of(packed, c.x, w.cols, c.m, c.residual, nullptr, args);
  const std::int64_t columns = cuda::gemm_i8_columns(packed), rows = args.x_params.rows;
  oracle o;
  for (std::int64_t r = 0; r < c.m; ++r)
    for (std::int64_t n = 0; n < w.rows; ++n) {
      double sum = 0, magnitude = 0;
      for (std::int64_t k = 0; k < w.cols; ++k) {
        const double scale = x.params[static_cast<std::size_t>((k / columns * rows + r) * 2)];
        const double value = scale * x.codes[static_cast<std::size_t>(r * w.cols + k)];
        const double weight = w.values[static_cast<std::size_t>(n * w.cols + k)];
        sum += weight * value;
        magnitude += (2 * std::abs(weight) + 0.2) * std::abs(value); // an offset may cancel a code
      }
      o.value.push_back(sum);
      o.bound.push_back(magnitude * static_cast<double>(w.cols / columns + 12) * 0x1p-24 + 1e-30);
    }
  return o;
}

struct shape {
  std::int64_t rows, groups, m;
  prefill_size prefill = prefill_size::none;
};

} // namespace

TEST_CASE("cuda products of int8 are those of the codes, for few rows and many, emulated") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  const i8_case i8 = GENERATE(from_range(std::begin(all_i8), std::end(all_i8)));
  for (const auto& [rows, groups, m, prefill] :
       {shape{1, 2, 1}, shape{33, 6, 3}, shape{70, 2, 17}, shape{20, 4, 11},
        shape{1, 1, 1, prefill_size::small}, shape{300, 1, 66, prefill_size::large},
        shape{35, 5, 52, prefill_size::small}}) {
    const std::int64_t cols = groups * i8.group;
    CAPTURE(i8.group, static_cast<int>(i8.form), i8.zero, rows, cols, m);
    const matrix w = matrix_of(i8, rows, cols);
    const auto packed = pack(*dev, w.source(), "w").value();
    // With a single row, all groups may have one zero point by chance, which changes the columns.
    if (rows > 1) REQUIRE(cuda::gemm_i8_columns(packed.get().view) == i8.columns);
    for (const int pairs : {1, 2}) {
      if (pairs == 1 && (m <= 16 || prefill != prefill_size::none)) continue;
      call c = int8_call(packed.get().view, m);
      c.prefill = prefill;
      c.residual = m == 11;
      c.pairs = pairs;
      const block_report report = emulate(packed.get().view, c);
      CHECK(report.bank_conflicts == 0);
      check(c, product_of_codes(w, packed.get().view, c));
    }
  }
}

TEST_CASE("cuda products of int8x2 add the residuals' product to the codes', emulated") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  const i8_case i8 = GENERATE(from_range(std::begin(all_i8), std::end(all_i8)));
  const auto size = GENERATE(prefill_size::none, prefill_size::small);
  CAPTURE(i8.group, static_cast<int>(i8.form), i8.zero, static_cast<int>(size));
  const std::int64_t rows = 33, m = 5;
  const matrix w = matrix_of(i8, rows, 3 * i8.group);
  const auto packed = pack(*dev, w.source(), "w").value();
  call c = int8_call(packed.get().view, m);
  c.prefill = size;
  c.int8x2 = true;
  c.bias = random_floats(rows, 7);
  emulate(packed.get().view, c);
  oracle want = exact(w, c.x, m, compute_type::int8x2, {i8.columns, true});
  for (std::size_t i = 0; i < want.value.size(); ++i) {
    want.value[i] += double{c.bias[i % c.bias.size()]};
    want.bound[i] += 1e-5;
  }
  check(c, want);
}

TEST_CASE("cuda products of int8 have one row's bits alone and among any others, emulated") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  const i8_case i8 = GENERATE(from_range(std::begin(all_i8), std::end(all_i8)));
  CAPTURE(i8.group, static_cast<int>(i8.form), i8.zero);
  // Eight slices, of which some are empty.
  const matrix w = matrix_of(i8, 33, i8.group == 256 ? 1280 : 1152);
  const auto packed = pack(*dev, w.source(), "w").value();
  const detail::packed_view& view = packed.get().view;
  call all = int8_call(view, 50);
  emulate(view, all);
  const auto same = [&](call some) {
    some.x.resize(static_cast<std::size_t>(some.m * view.cols));
    some.out.assign(static_cast<std::size_t>(some.m * view.rows), NAN);
    CHECK(emulate(view, some).bank_conflicts == 0);
    CHECK(std::memcmp(some.out.data(), all.out.data(), some.out.size() * sizeof(float)) == 0);
  };
  for (const std::int64_t m : {1, 11, 32}) {
    CAPTURE(m);
    call some = all;
    some.m = m;
    some.pairs = 1;
    same(some);
  }
  for (const auto size : {prefill_size::small, prefill_size::large}) {
    CAPTURE(static_cast<int>(size));
    call many = all;
    many.prefill = size;
    same(many);
  }
  CHECK(std::none_of(all.out.begin(), all.out.end(), [](float x) { return std::isnan(x); }));
}

// One activation is 126 among many of 127, so that a sum which is not exact shows.
TEST_CASE("cuda products of int8 are exact at both ends of the codes, emulated") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  for (const int zero : {0, 128, 255})
    for (const int code : {0, 255})
      for (const float sign : {1.0F, -1.0F})
        for (const auto size : {prefill_size::none, prefill_size::large}) {
          CAPTURE(zero, code, sign, static_cast<int>(size));
          matrix w = matrix_of({128, offsets::factored, zero, 128}, 3, 128);
          std::fill(w.codes.begin(), w.codes.end(), static_cast<std::uint8_t>(code));
          std::fill(w.scales.begin(), w.scales.end(), 1.0F);
          set_zero(w, 0, zero), set_zero(w, 1, zero), set_zero(w, 2, zero);
          const auto packed = pack(*dev, w.source(), "w").value();
          call c = int8_call(packed.get().view, 2);
          c.prefill = size;
          std::fill(c.x.begin(), c.x.end(), sign * 127);
          c.x[0] = sign * 126; // the largest value is 127, so the scale is 1
          emulate(packed.get().view, c);
          const float want = static_cast<float>(code - zero) * sign;
          CHECK(c.out[0] == want * (127 * 127 + 126));
          CHECK(c.out[3] == want * 128 * 127);
        }
}

TEST_CASE("cuda products of int8 take bias and what is there, and silu_mul, emulated") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  const auto size = GENERATE(prefill_size::small, prefill_size::large);
  CAPTURE(static_cast<int>(size));
  const std::int64_t outputs = 160, m = 37;
  const matrix w = matrix_of({256, offsets::stored_f16, 128, 128}, 2 * outputs, 256);
  const auto packed = pack(*dev, w.source(), "w").value();
  const detail::packed_view& view = packed.get().view;
  call c = int8_call(view, m);
  c.prefill = size;
  emulate(view, c);
  const std::vector<float> product = c.out;
  call added = c;
  added.bias = random_floats(2 * outputs, 7);
  added.accumulate = true;
  added.out = random_floats(m * 2 * outputs, 8);
  const std::vector<float> before = added.out;
  emulate(view, added);
  int wrong = 0;
  for (std::size_t i = 0; i < product.size(); ++i)
    wrong += added.out[i] != before[i] + (product[i] + added.bias[i % added.bias.size()]);
  CHECK(wrong == 0);
  c.gated = dtype::f32;
  CHECK(emulate(view, c).bank_conflicts == 0);
  wrong = 0;
  for (std::int64_t r = 0; r < m; ++r)
    for (std::int64_t n = 0; n < outputs; ++n) {
      float value = 0;
      std::memcpy(&value, c.gated_out.data() + (r * outputs + n) * 4, sizeof value);
      const float* const gate = product.data() + r * 2 * outputs + n;
      wrong += value != detail::silu(gate[0]) * gate[outputs];
    }
  CHECK(wrong == 0);
}

namespace {

/// A matrix for its shape alone.
packed_matrix of_columns(device& dev, std::int64_t cols, std::int32_t group) {
  return pack(dev, matrix_of({group, offsets::factored, 128, 0}, 16, cols).source(), "w").value();
}

} // namespace

TEST_CASE("cuda activations become the nearest codes, with a scale and a sum a segment, emulated") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  const std::int32_t group = GENERATE(32, 64, 128);
  // More columns than one block converts, in rows that are aligned to 16 bytes or not.
  const std::int64_t cols = group * 11, m = 9;
  const std::int64_t stride = cols + GENERATE(0, 3);
  const bool ordered = GENERATE(false, true);
  CAPTURE(group, stride, ordered);
  const auto packed = of_columns(*dev, cols, group);
  std::vector<float> x = spiky_floats((m - 1) * stride + cols, 9);
  std::fill_n(x.begin(), group, 0.0F);
  std::fill_n(x.begin() + group, group, 1e-32F); // so small that zeros are stored
  std::vector<std::int32_t> order;
  for (std::int32_t k = 0; k < cols; ++k)
    order.push_back(ordered ? (k * 37 + 11) % static_cast<std::int32_t>(cols) : k);
  cuda::gemm_args args{};
  const auto rounded = [&](bool residual) {
    return codes_of(packed.get().view, x, stride, m, residual, ordered ? &order : nullptr, args);
  };
  const activations first = rounded(false), second = rounded(true);
  const std::int64_t rows = args.x_params.rows;
  CHECK(rows == 16);
  int far = 0, far_with_residual = 0, wrong_sums = 0;
  for (std::int64_t r = 0; r < m; ++r)
    for (std::int64_t begin = 0; begin < cols; begin += group) {
      const auto at = static_cast<std::size_t>((begin / group * rows + r) * 2);
      const double scale = first.params[at], finer = second.params[at];
      double largest = 0, sum = 0, residual_sum = 0;
      for (std::int64_t k = begin; k < begin + group; ++k) {
        const auto i = static_cast<std::size_t>(r * cols + k);
        const double value = x[static_cast<std::size_t>(r * stride + order[k])];
        const double code = first.codes[i], residual = second.codes[i];
        largest = std::max(largest, std::abs(value));
        far += std::abs(value - scale * code) > scale * 0.5001 + 1e-31;
        far_with_residual +=
            std::abs(value - scale * code - finer * residual) > finer * 0.51 + 1e-31;
        sum += code;
        residual_sum += residual;
      }
      wrong_sums += first.params[at + 1] != sum || second.params[at + 1] != residual_sum;
      CHECK(scale == (largest > 1e-30 ? static_cast<float>(largest) / 127.0F : 0.0F));
      CHECK(finer == scale / 128);
    }
  CHECK(far == 0);
  CHECK(far_with_residual == 0);
  CHECK(wrong_sums == 0);
}

TEST_CASE("cuda activations that are not finite make their row's outputs NaN, emulated") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  const matrix w = matrix_of({64, offsets::factored, 128, 64}, 20, 256);
  const auto packed = pack(*dev, w.source(), "w").value();
  const auto size = GENERATE(prefill_size::none, prefill_size::large);
  const bool residual = GENERATE(false, true);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    call c = int8_call(packed.get().view, 3);
    c.prefill = size;
    c.residual = residual;
    c.x[256 + 70] = bad;
    emulate(packed.get().view, c);
    for (std::size_t i = 0; i < c.out.size(); ++i)
      REQUIRE(std::isnan(c.out[i]) == (i / 20 == 1));
  }
}

TEST_CASE("cuda room for int8 activations is enough before the form of the scales is known") {
  detail::packed_view described{.kind = weight_kind::grouped_u8, .group = 128};
  described.cols = 640;
  for (const std::int64_t m : {1, 7, 8, 33}) {
    const cuda::int8_room room(described, m);
    const std::int64_t rows = (m + 7) / 8 * 8;
    CHECK(room.param_rows == rows);
    CHECK(room.params_at >= m * 640);
    CHECK(room.params_at % 64 == 0);
    CHECK(room.bytes >= room.params_at + 640 / 32 * rows * 8);
    CHECK(room.bytes % 64 == 0);
  }
}

TEST_CASE("cuda products of int8 leave other weights to the portable ops") {
  const detail::packed_view good{
      .kind = weight_kind::grouped_u8, .offset_factor = -128, .group = 32};
  CHECK(cuda::gemm_i8_takes(good));
  const auto takes = [&](auto change) {
    detail::packed_view w = good;
    change(w);
    return cuda::gemm_i8_takes(w);
  };
  using view = detail::packed_view;
  for (const std::int32_t group : {8, 16, 24, 48, 80})
    CHECK_FALSE(takes([&](view& w) { w.group = group; }));
  CHECK(takes([](view& w) { w.offsets_stored = true; }));
  CHECK_FALSE(takes([](view& w) { w.offset_factor = 1; }));
  CHECK_FALSE(takes([](view& w) { w.int16_quant_params = true; }));
  for (const weight_kind kind :
       {weight_kind::f16, weight_kind::grouped_u4, weight_kind::grouped_u4_as_u8})
    CHECK_FALSE(takes([&](view& w) { w.kind = kind; }));
}
