#include "tests/catch.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

#include "gpu/detail/packed_matrix_impl.hpp"
#include "gpu/linear/cuda/gemv_w4.hpp"
#include "gpu/linear/packed_matrix.hpp"
#include "tests/gpu/cuda/emulator.hpp"
#include "tests/gpu/linear/linear_fixture.hpp"

using namespace twill::gpu;
using namespace twill::gpu::test;
using twill::test::block_report;
using twill::test::emulated_ptx;

namespace {

struct call {
  std::vector<float> x;
  std::int64_t stride;
  std::vector<float> out;
  std::vector<std::int32_t> order;
  std::vector<float> bias;
  bool accumulate = false;
};

/// Runs the kernel over all row panels. Memory is checked to the byte.
template <int Rows>
block_report emulate(const detail::packed_view& w, call& c) {
  cuda::gemv_w4_args args{};
  args.w = w;
  args.x = c.x.data();
  args.x_stride = c.stride;
  args.order = c.order.empty() ? nullptr : c.order.data();
  args.bias = c.bias.empty() ? nullptr : c.bias.data();
  args.out = c.out.data();
  args.out_stride = w.rows;
  args.accumulate = c.accumulate;
  args.vectors = c.order.empty() && c.stride % 4 == 0 &&
                 reinterpret_cast<std::uintptr_t>(c.x.data()) % 16 == 0;
  block_report sum;
  for (std::int64_t panel = 0; panel < w.panels; ++panel) {
    const auto one = twill::test::run_block(
        {.index = static_cast<int>(panel),
         .threads = cuda::gemv_w4_threads,
         .shared_bytes = cuda::gemv_w4_shared_bytes(Rows),
         .global = {{w.codes, static_cast<std::size_t>(w.panels * w.codes_stride), false},
                    {c.x.data(), c.x.size() * 4, false},
                    {c.order.data(), c.order.size() * 4, false},
                    {c.bias.data(), c.bias.size() * 4, false},
                    {c.out.data(), c.out.size() * 4, true}}},
        [&](emulated_ptx ptx) {
          cuda::gemv_w4<Rows, emulated_ptx>{ptx, args}.run();
        });
    sum.bank_conflicts += one.bank_conflicts;
    sum.shared_accesses += one.shared_accesses;
  }
  return sum;
}

block_report emulate(const detail::packed_view& w, call& c, std::int64_t m) {
  switch (m) {
  case 1:
    return emulate<1>(w, c);
  case 2:
    return emulate<2>(w, c);
  case 3:
    return emulate<3>(w, c);
  default:
    return emulate<4>(w, c);
  }
}

void check(const call& c, const oracle& want) {
  double excess = 0;
  for (std::size_t i = 0; i < want.value.size(); ++i) {
    const double e = std::abs(c.out[i] - want.value[i]) / want.bound[i];
    excess = e <= excess ? excess : e; // keeps NaN
  }
  CHECK(excess <= 1);
}

} // namespace

TEST_CASE("cuda GEMV of 4-bit weights agrees with a naive product, emulated") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  struct shape {
    std::int64_t rows, cols;
    std::int32_t group;
  };
  for (const auto& [rows, cols, group] :
       {shape{1, 8, 8}, shape{16, 32, 32}, shape{35, 240, 48}, shape{17, 1024, 128},
        shape{20, 1152, 128}, shape{9, 2080, 32}})
    for (const offsets form : {offsets::stored_f16, offsets::stored_f32, offsets::factored,
                               offsets::zero_points, offsets::zero_points_f32}) {
      const matrix w = random_matrix(weight_kind::grouped_u4, rows, cols, group, form, 2);
      const auto packed = pack(*dev, w.source(), "w").value();
      std::vector<float> alone;
      for (std::int64_t m = 1; m <= 4; ++m) {
        CAPTURE(rows, cols, group, static_cast<int>(form), m);
        call c;
        c.x = spiky_floats(m * cols, 5);
        c.stride = cols;
        c.out.assign(static_cast<std::size_t>(m * rows), NAN);
        const block_report report = emulate(packed.get().view, c, m);
        check(c, exact(w, c.x, m, compute_type::f32));
        CHECK(report.bank_conflicts == 0);
        if (m == 1) alone = c.out;
        REQUIRE(std::memcmp(c.out.data(), alone.data(), alone.size() * 4) == 0);
      }
    }
}

TEST_CASE("cuda GEMV takes strided rows, a column order, bias and what is there, emulated") {
  auto dev = device::open({.kind = "host", .threads = 1}).value();
  const std::int64_t rows = 21, cols = 320, m = 3;
  const matrix w = random_matrix(weight_kind::grouped_u4, rows, cols, 32, offsets::zero_points, 3);
  const auto packed = pack(*dev, w.source(), "w").value();
  for (const bool ordered : {false, true}) {
    CAPTURE(ordered);
    call c;
    c.stride = cols + 3; // no piece of 16 bytes is aligned in every row
    const auto x = spiky_floats(m * cols, 6);
    c.x.assign(static_cast<std::size_t>(m * c.stride), NAN);
    for (std::int64_t k = 0; k < cols; ++k)
      if (ordered) c.order.push_back(static_cast<std::int32_t>((k * 7 + 5) % cols));
    for (std::int64_t r = 0; r < m; ++r)
      for (std::int64_t k = 0; k < cols; ++k)
        c.x[static_cast<std::size_t>(r * c.stride + (ordered ? (k * 7 + 5) % cols : k))] =
            x[static_cast<std::size_t>(r * cols + k)];
    c.bias = random_floats(rows, 7);
    c.accumulate = true;
    c.out = random_floats(m * rows, 8);
    oracle want = exact(w, x, m, compute_type::f32);
    for (std::size_t i = 0; i < want.value.size(); ++i) {
      want.value[i] += double{c.bias[i % static_cast<std::size_t>(rows)]} + double{c.out[i]};
      want.bound[i] += 1e-5;
    }
    emulate(packed.get().view, c, m);
    check(c, want);
  }
}
