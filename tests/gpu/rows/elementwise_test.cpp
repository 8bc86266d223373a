#include "tests/catch.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

#include "gpu/rows/elementwise.hpp"
#include "gpu/rows/norms.hpp"
#include "tests/gpu/implementations.hpp"
#include "tests/gpu/ragged_case.hpp"
#include "tests/support/worse.hpp"

using namespace twill;
using gpu::dtype;
using test::device_array;

TEST_CASE("rms_norm agrees with a naive oracle, with and without a residual, over strided rows") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  for (const auto& [m, n] : std::vector<std::pair<long, long>>{
           {0, 8}, {1, 1}, {1, 576}, {3, 17}, {5, 31}, {200, 576}, {64, 2048}, {2, 4097}}) {
    for (const bool residual : {false, true}) {
      CAPTURE(m, n, residual);
      const long stride = n + 5;
      const auto x = test::random_floats(static_cast<std::size_t>(m * stride), 1);
      const auto r = test::random_floats(static_cast<std::size_t>(m * n), 2, 3.0f);
      const auto w = test::random_floats(static_cast<std::size_t>(n), 3);
      device_array<float> dx(*dev, x), dr(*dev, r), dw(*dev, w);
      device_array<float> out(*dev, std::vector<float>(static_cast<std::size_t>(m * n)));
      gpu::tensor_ref sum = gpu::view_2d(dr.data(), dtype::f32, m, n);
      gpu::rms_norm(*dev, gpu::view_2d(dx.data(), dtype::f32, m, n, stride), dw.data(), 1e-5f,
                    gpu::view_2d(out.data(), dtype::f32, m, n), residual ? &sum : nullptr);
      const auto actual = out.get();
      const auto got_sum = dr.get();
      double worst = 0;
      for (long i = 0; i < m; ++i) {
        std::vector<double> row;
        double squares = 0;
        for (long j = 0; j < n; ++j) {
          const auto at = static_cast<std::size_t>(i * n + j);
          const float a = x[static_cast<std::size_t>(i * stride + j)];
          row.push_back(residual ? a + r[at] : a);
          squares += row.back() * row.back();
          if (residual) REQUIRE(got_sum[at] == static_cast<float>(a + r[at]));
        }
        const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
        for (long j = 0; j < n; ++j)
          worst = twill::test::worse(worst,
                                     std::abs(row[static_cast<std::size_t>(j)] * scale *
                                                  double{w[static_cast<std::size_t>(j)]} -
                                              double{actual[static_cast<std::size_t>(i * n + j)]}));
      }
      CHECK(worst < 2e-5);
    }
  }
}

TEST_CASE("a normed row has the same bits alone and in a batch, and may overwrite its input") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  const long m = 150, n = 577;
  const auto x = test::random_floats(m * n, 4);
  device_array<float> in(*dev, x), w(*dev, test::random_floats(n, 5));
  device_array<float> out(*dev, std::vector<float>(m * n));
  gpu::rms_norm(*dev, gpu::view_2d(in.data(), dtype::f32, m, n), w.data(), 1e-6f,
                gpu::view_2d(out.data(), dtype::f32, m, n));
  for (long i = 0; i < m; ++i) {
    const auto row = gpu::view_2d(in.data() + i * n, dtype::f32, 1, n);
    gpu::rms_norm(*dev, row, w.data(), 1e-6f, row);
  }
  CHECK(test::same_bits(in.get(), out.get()));
}

TEST_CASE("silu_mul agrees with a naive oracle, from very negative to very positive gates") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  for (const auto& [m, n] : std::vector<std::pair<long, long>>{
           {0, 3}, {1, 1}, {1, 1536}, {7, 19}, {100, 1536}, {3, 5000}}) {
    CAPTURE(m, n);
    auto x = test::random_floats(static_cast<std::size_t>(m * 2 * n), 6, 4.0f);
    if (m > 0) x[0] = 300;
    if (m > 1) x[static_cast<std::size_t>(2 * n)] = -300;
    device_array<float> in(*dev, x);
    device_array<float> out(*dev, std::vector<float>(static_cast<std::size_t>(m * n)));
    gpu::silu_mul(*dev, gpu::view_2d(in.data(), dtype::f32, m, 2 * n),
                  gpu::view_2d(out.data(), dtype::f32, m, n));
    const auto actual = out.get();
    double worst = 0;
    for (long i = 0; i < m; ++i)
      for (long j = 0; j < n; ++j) {
        const double gate = x[static_cast<std::size_t>(i * 2 * n + j)];
        const double up = x[static_cast<std::size_t>(i * 2 * n + n + j)];
        const double expected = gate / (1 + std::exp(-gate)) * up;
        worst = twill::test::worse(
            worst, std::abs(expected - double{actual[static_cast<std::size_t>(i * n + j)]}) /
                       (1 + std::abs(expected)));
      }
    CHECK(worst < 1e-6);
  }
}

TEST_CASE("gather_rows copies the named rows, repeats included") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  const long m = 9, n = 2500;
  const auto x = test::random_floats(m * n, 7);
  device_array<float> in(*dev, x);
  const std::vector<std::int32_t> ids{8, 0, 0, 3};
  device_array<std::int32_t> rows(*dev, ids);
  device_array<float> out(*dev, std::vector<float>(ids.size() * n));
  gpu::gather_rows(*dev, gpu::view_2d(in.data(), dtype::f32, m, n), rows.data(),
                   gpu::view_2d(out.data(), dtype::f32, static_cast<long>(ids.size()), n));
  const auto actual = out.get();
  for (std::size_t i = 0; i < ids.size(); ++i)
    CHECK(std::equal(actual.begin() + static_cast<long>(i) * n,
                     actual.begin() + static_cast<long>(i + 1) * n, x.begin() + ids[i] * n));
}
