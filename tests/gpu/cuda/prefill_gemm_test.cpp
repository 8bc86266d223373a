#include "tests/catch.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "tests/gpu/cuda/gemm_harness.hpp"

using namespace twill::gpu;
using namespace twill::gpu::test;

namespace {

struct weights_case {
  weight_kind kind;
  std::int32_t group;
  offsets form;
  bool bf16; ///< activations are bf16, otherwise f16
};
constexpr weights_case all_weights[] = {
    {weight_kind::f16, 0, offsets::factored, false},
    {weight_kind::bf16, 0, offsets::factored, true},
    {weight_kind::grouped_u4, 128, offsets::zero_points, false},
    {weight_kind::grouped_u4, 64, offsets::zero_points, true},
    {weight_kind::grouped_u4, 32, offsets::factored, false},
    {weight_kind::grouped_u4, 64, offsets::zero_points_f32, true},
    {weight_kind::grouped_u4, 32, offsets::stored_f16, false},
    {weight_kind::grouped_u4, 32, offsets::stored_f32, true},
    {weight_kind::grouped_u8, 128, offsets::zero_points, false},
    {weight_kind::grouped_u8, 32, offsets::factored, true},
    {weight_kind::grouped_u8, 32, offsets::zero_points_f32, false},
    {weight_kind::grouped_u8, 32, offsets::stored_f16, true},
    {weight_kind::grouped_u8, 64, offsets::stored_f32, false},
    {weight_kind::grouped_u8, 16, offsets::zero_points, true},
    {weight_kind::grouped_u8, 16, offsets::zero_points_f32, false},
};

matrix matrix_of(weight_kind kind, std::int64_t rows, std::int64_t cols, std::int32_t group,
                 offsets form) {
  matrix w = random_matrix(kind, rows, cols, group, form, 2);
  // Where 255 * scale rounds up in f32, packing no longer finds the zero point 255.
  if (kind == weight_kind::grouped_u8 && form == offsets::zero_points_f32)
    for (std::size_t g = 0; g < w.scales.size(); ++g)
      if (w.group_offsets[g] < -254.5F * w.scales[g]) set_zero(w, g, 254);
  return w;
}

std::vector<float> product_of(const detail::packed_view& packed, const call& from,
                              prefill_size size) {
  call c = from;
  c.prefill = size;
  CHECK(emulate(packed, c).bank_conflicts == 0);
  return c.out;
}

} // namespace

TEST_CASE("cuda products of many rows agree with a naive product, emulated") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  const auto [kind, group, form, bf16] =
      GENERATE(from_range(std::begin(all_weights), std::end(all_weights)));
  const auto size = GENERATE(prefill_size::small, prefill_size::large);
  struct shape {
    std::int64_t rows, cols, m;
  };
  // The shapes cover products whose columns are a single segment (a run of columns whose products
  // are summed before scales apply, see gpu/linear/cuda/gemm.hpp), products with fewer steps of 32
  // columns than shared memory has buffers for, products with a single row, and products with few
  // rows and outputs in the last blocks of threads.
  const std::int64_t least = std::max(group, 32);
  for (const auto& [rows, cols, m] :
       {shape{1, 128, 1}, shape{33, least, 5}, shape{300, 128, 66}, shape{35, 640, 97}}) {
    CAPTURE(static_cast<int>(kind), group, static_cast<int>(form), bf16, rows, cols, m);
    const matrix w = matrix_of(kind, rows, cols, group, form);
    const auto packed = pack(*dev, w.source(), "w").value();
    call c = random_call(packed.get().view, m, bf16);
    c.prefill = size;
    CHECK(emulate(packed.get().view, c).bank_conflicts == 0);
    check(c, exact(w, c.x, m, compute_type::f32));
  }
}

TEST_CASE("cuda products of many rows sum a row as those of few do, emulated") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  const auto [kind, group, form, bf16] =
      GENERATE(from_range(std::begin(all_weights), std::end(all_weights)));
  CAPTURE(static_cast<int>(kind), group, static_cast<int>(form), bf16);
  // Nine segments of 128 columns are split into eight slices, three of them empty.
  const matrix w = matrix_of(kind, 64, 1152, group, form);
  const auto packed = pack(*dev, w.source(), "w").value();
  call c = random_call(packed.get().view, 70, bf16);
  c.order_records = true;
  const std::vector<float> few = product_of(packed.get().view, c, prefill_size::none);
  for (const auto size : {prefill_size::small, prefill_size::large}) {
    CAPTURE(static_cast<int>(size));
    const std::vector<float> many = product_of(packed.get().view, c, size);
    CHECK(std::memcmp(many.data(), few.data(), few.size() * sizeof(float)) == 0);
  }
  CHECK(std::none_of(few.begin(), few.end(), [](float x) { return std::isnan(x); }));
}

TEST_CASE("cuda products of many rows take strides, bias and what is there, emulated") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  const auto kind = GENERATE(weight_kind::grouped_u4, weight_kind::f16, weight_kind::bf16);
  const auto size = GENERATE(prefill_size::small, prefill_size::large);
  // Rows of outputs begin at multiples of 16 bytes, or not.
  for (const std::int64_t rows : {36, 37}) {
    CAPTURE(static_cast<int>(kind), static_cast<int>(size), rows);
    const matrix w = random_matrix(kind, rows, 256, 64, offsets::zero_points, 3);
    check_strided(w, pack(*dev, w.source(), "w").value().get().view, 65, kind == weight_kind::bf16,
                  size);
  }
}

TEST_CASE("cuda products with silu_mul have the bits of both ops, emulated") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  const auto [kind, group, form, bf16] =
      GENERATE(values<weights_case>({{weight_kind::grouped_u4, 128, offsets::zero_points, false},
                                     {weight_kind::grouped_u4, 32, offsets::stored_f16, true},
                                     {weight_kind::grouped_u8, 32, offsets::factored, true},
                                     {weight_kind::f16, 0, offsets::factored, false},
                                     {weight_kind::bf16, 0, offsets::factored, true}}));
  const auto size = GENERATE(prefill_size::small, prefill_size::large);
  CAPTURE(static_cast<int>(kind), group, static_cast<int>(form), bf16, static_cast<int>(size));
  // The outputs have two halves, gate and up. A row panel is 16 rows of weights, which give 16
  // outputs. Each half has five pairs of row panels. A block of threads computes four pairs of each
  // half, or two for 16-bit weights, so the last block is filled in part.
  const std::int64_t outputs = 160, m = 37;
  const matrix w = matrix_of(kind, 2 * outputs, 128, group, form);
  const auto packed = pack(*dev, w.source(), "w").value();
  const detail::packed_view& view = packed.get().view;
  call c = random_call(view, m, bf16);
  const std::vector<float> product = product_of(view, c, size);
  c.prefill = size;
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16})
    for (const std::int64_t extra : {0, 3}) { // rows lie at multiples of four elements, or do not
      CAPTURE(static_cast<int>(type), extra);
      c.gated = type;
      c.gated_extra = extra;
      c.out.assign(c.out.size(), 7.0F);
      CHECK(emulate(view, c).bank_conflicts == 0);
      CHECK(std::all_of(c.out.begin(), c.out.end(), [](float x) { return x == 7.0F; }));
      std::vector<unsigned char> want(c.gated_out.size(), 0xff);
      detail::with_activation_element(type, [&](auto element) {
        using Element = decltype(element);
        for (std::int64_t r = 0; r < m; ++r)
          for (std::int64_t n = 0; n < outputs; ++n) {
            const float* const gate = product.data() + r * 2 * outputs + n;
            const auto value = Element::narrow(detail::silu(gate[0]) * gate[outputs]);
            std::memcpy(want.data() +
                            static_cast<std::size_t>(r * (outputs + extra) + n) * sizeof value,
                        &value, sizeof value);
          }
      });
      CHECK(c.gated_out == want);
    }
}
