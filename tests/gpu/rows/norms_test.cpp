#include "tests/catch.hpp"

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "gpu/rows/elementwise.hpp"
#include "gpu/rows/norms.hpp"
#include "tests/gpu/implementations.hpp"
#include "tests/gpu/ragged_case.hpp"
#include "tests/support/worse.hpp"

using namespace twill;
using gpu::activation;
using gpu::dtype;
using test::device_array;

namespace {

double activated(activation kind, double x) {
  switch (kind) {
  case activation::relu:
    return x > 0 ? x : 0;
  case activation::gelu:
    return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  case activation::gelu_tanh:
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
  case activation::silu:
    break;
  }
  return x / (1 + std::exp(-x));
}

} // namespace

TEST_CASE("layer_norm agrees with a naive oracle, with and without bias, in place and apart") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  for (const auto& [m, n] : std::vector<std::pair<long, long>>{
           {0, 8}, {1, 1}, {1, 768}, {3, 17}, {5, 31}, {200, 512}, {2, 4097}}) {
    for (const bool biased : {false, true})
      for (const bool in_place : {false, true}) {
        CAPTURE(m, n, biased, in_place);
        const long stride = n + 5;
        auto x = test::random_floats(static_cast<std::size_t>(m * stride), 1);
        for (float& v : x)
          v += 30; // a mean at which a one-pass variance is inexact
        const auto w = test::random_floats(static_cast<std::size_t>(n), 2);
        const auto b = test::random_floats(static_cast<std::size_t>(n), 3);
        device_array<float> dx(*dev, x), dw(*dev, w), db(*dev, b);
        device_array<float> apart(*dev, std::vector<float>(static_cast<std::size_t>(m * stride)));
        const auto in = gpu::view_2d(dx.data(), dtype::f32, m, n, stride);
        gpu::layer_norm(*dev, in, dw.data(), biased ? db.data() : nullptr, 1e-5f,
                        in_place ? in : gpu::view_2d(apart.data(), dtype::f32, m, n, stride));
        const auto actual = in_place ? dx.get() : apart.get();
        double worst = 0;
        for (long i = 0; i < m; ++i) {
          const float* row = x.data() + i * stride;
          double mean = 0, variance = 0;
          for (long j = 0; j < n; ++j)
            mean += row[j] / static_cast<double>(n);
          for (long j = 0; j < n; ++j)
            variance += (row[j] - mean) * (row[j] - mean) / static_cast<double>(n);
          for (long j = 0; j < n; ++j) {
            const auto at = static_cast<std::size_t>(j);
            const double want = (row[j] - mean) / std::sqrt(variance + 1e-5) * double{w[at]} +
                                (biased ? double{b[at]} : 0.0);
            worst = twill::test::worse(
                worst, std::abs(want - double{actual[static_cast<std::size_t>(i * stride + j)]}));
          }
          for (long j = n; j < stride; ++j) // between rows nothing is written
            REQUIRE(actual[static_cast<std::size_t>(i * stride + j)] == (in_place ? row[j] : 0.0f));
        }
        CHECK(worst < (n == 1 ? 1e-6 : 1e-4));
      }
  }
}

TEST_CASE("a layer-normed row has the same bits alone and in a batch") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  const long m = 90, n = 1025;
  device_array<float> in(*dev, test::random_floats(m * n, 4)), w(*dev, test::random_floats(n, 5));
  device_array<float> out(*dev, std::vector<float>(m * n));
  gpu::layer_norm(*dev, gpu::view_2d(in.data(), dtype::f32, m, n), w.data(), w.data(), 1e-6f,
                  gpu::view_2d(out.data(), dtype::f32, m, n));
  for (long i = 0; i < m; ++i) {
    const auto row = gpu::view_2d(in.data() + i * n, dtype::f32, 1, n);
    gpu::layer_norm(*dev, row, w.data(), w.data(), 1e-6f, row);
  }
  CHECK(test::same_bits(in.get(), out.get()));
}

TEST_CASE("head_norm normalises every head apart and leaves what lies between rows") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  for (const auto& [heads, dim] :
       std::vector<std::pair<long, long>>{{1, 1}, {3, 8}, {5, 40}, {16, 128}})
    for (const long m : {0L, 1L, 7L, 150L}) {
      CAPTURE(heads, dim, m);
      const long n = heads * dim, stride = n + 11;
      const auto x = test::random_floats(static_cast<std::size_t>(m * stride), 6, 2.0f);
      const auto w = test::random_floats(static_cast<std::size_t>(dim), 7);
      device_array<float> dx(*dev, x), dw(*dev, w);
      gpu::head_norm(*dev, gpu::view_2d(dx.data(), dtype::f32, m, n, stride),
                     static_cast<std::int32_t>(heads), dw.data(), 1e-6f);
      const auto actual = dx.get();
      double worst = 0;
      for (long i = 0; i < m; ++i) {
        for (long h = 0; h < heads; ++h) {
          const float* head = x.data() + i * stride + h * dim;
          double squares = 0;
          for (long d = 0; d < dim; ++d)
            squares += double{head[d]} * double{head[d]};
          const double scale = 1 / std::sqrt(squares / static_cast<double>(dim) + 1e-6);
          for (long d = 0; d < dim; ++d)
            worst = twill::test::worse(
                worst,
                std::abs(head[d] * scale * double{w[static_cast<std::size_t>(d)]} -
                         double{actual[static_cast<std::size_t>(i * stride + h * dim + d)]}));
        }
        for (long j = n; j < stride; ++j)
          REQUIRE(actual[static_cast<std::size_t>(i * stride + j)] ==
                  x[static_cast<std::size_t>(i * stride + j)]);
      }
      CHECK(worst < 2e-5);
    }
}

TEST_CASE("activations agree with a naive oracle, from very negative to very positive") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  for (const activation kind :
       {activation::relu, activation::gelu, activation::gelu_tanh, activation::silu})
    for (const auto& [m, n] :
         std::vector<std::pair<long, long>>{{0, 3}, {1, 1}, {1, 3072}, {7, 19}, {60, 2049}}) {
      CAPTURE(static_cast<int>(kind), m, n);
      const long stride = n + 3;
      auto x = test::random_floats(static_cast<std::size_t>(m * stride), 8, 3.0f);
      if (m > 0) x[0] = 200;
      if (m > 1) x[static_cast<std::size_t>(stride)] = -200;
      device_array<float> dx(*dev, x);
      gpu::activate(*dev, gpu::view_2d(dx.data(), dtype::f32, m, n, stride), kind);
      const auto actual = dx.get();
      double worst = 0;
      for (long i = 0; i < m; ++i)
        for (long j = 0; j < stride; ++j) {
          const auto at = static_cast<std::size_t>(i * stride + j);
          const double want = j < n ? activated(kind, x[at]) : double{x[at]};
          worst =
              twill::test::worse(worst, std::abs(want - double{actual[at]}) / (1 + std::abs(want)));
        }
      CHECK(worst < 1e-6);
    }
}

TEST_CASE("relu keeps a NaN, so that what went wrong stays visible") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  device_array<float> x(*dev, {std::nanf(""), -1.0f, 2.0f});
  gpu::activate(*dev, gpu::view_2d(x.data(), dtype::f32, 1, 3), activation::relu);
  const auto actual = x.get();
  CHECK(std::isnan(actual[0]));
  CHECK(actual[1] == 0.0f);
  CHECK(actual[2] == 2.0f);
}

TEST_CASE("scale_columns multiplies each column by its factor") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  for (const auto& [m, n] :
       std::vector<std::pair<long, long>>{{0, 4}, {1, 1}, {3, 65}, {20, 4100}}) {
    const long stride = n + 2;
    const auto x = test::random_floats(static_cast<std::size_t>(m * stride), 9);
    const auto f = test::random_floats(static_cast<std::size_t>(n), 10);
    device_array<float> dx(*dev, x), df(*dev, f);
    gpu::scale_columns(*dev, gpu::view_2d(dx.data(), dtype::f32, m, n, stride), df.data());
    const auto actual = dx.get();
    for (long i = 0; i < m; ++i)
      for (long j = 0; j < stride; ++j) {
        const auto at = static_cast<std::size_t>(i * stride + j);
        REQUIRE(actual[at] == (j < n ? x[at] * f[static_cast<std::size_t>(j)] : x[at]));
      }
  }
}
