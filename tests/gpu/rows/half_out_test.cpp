// Ops that can write 16-bit values: each value must be the op's f32 value rounded once.
#include "tests/catch.hpp"

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "gpu/attention/attention.hpp"
#include "gpu/detail/attention_backend.hpp"
#include "gpu/detail/op_backends.hpp"
#include "gpu/detail/shapes.hpp"
#include "gpu/rows/elementwise.hpp"
#include "gpu/rows/norms.hpp"
#include "tests/gpu/implementations.hpp"
#include "tests/gpu/ragged_case.hpp"

using namespace twill;
using gpu::dtype;
using test::device_array;

namespace {

std::uint16_t narrowed(float x, dtype type) {
  return type == dtype::f16 ? gpu::detail::f32_to_f16(x) : gpu::detail::f32_to_bf16(x);
}

/// Runs `op` into f32 and into 16-bit types, with gaps of 3 elements between the rows.
void check_rounds_once(gpu::device& dev, long m, long n,
                       const std::function<void(gpu::tensor_ref out)>& op) {
  const long stride = n + 3;
  const auto size = static_cast<std::size_t>(m * stride);
  device_array<float> wide(dev, std::vector<float>(size, -7));
  op(gpu::view_2d(wide.data(), dtype::f32, m, n, stride));
  const auto want = wide.get();
  for (const dtype type : {dtype::f16, dtype::bf16}) {
    device_array<std::uint16_t> narrow(dev, std::vector<std::uint16_t>(size, 77));
    op(gpu::view_2d(narrow.data(), type, m, n, stride));
    const auto actual = narrow.get();
    for (std::size_t i = 0; i < size; ++i) {
      const bool inside = static_cast<long>(i) % stride < n;
      CAPTURE(m, n, i, name_of(type));
      REQUIRE(actual[i] == (inside ? narrowed(want[i], type) : 77));
    }
  }
}

constexpr std::pair<long, long> shapes[] = {{1, 1}, {1, 768}, {3, 17}, {21, 2049}};

} // namespace

TEST_CASE("norms, products with gates, activations and gathers write f16 and bf16") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  for (const auto& [rows, cols] : shapes) {
    const long m = rows, n = cols;
    // Some values overflow f16, and become infinite as they do in linear's own rounding.
    auto values = test::random_floats(static_cast<std::size_t>(2 * m * n), 1, 3.0F);
    values[0] = 3e5F;
    device_array<float> pairs(*dev, values);
    device_array<float> x(*dev, values);
    device_array<float> weight(*dev, test::random_floats(static_cast<std::size_t>(n), 2));
    device_array<float> bias(*dev, test::random_floats(static_cast<std::size_t>(n), 3));
    const auto in = gpu::view_2d(x.data(), dtype::f32, m, n);
    check_rounds_once(*dev, m, n, [&](gpu::tensor_ref out) {
      gpu::rms_norm(*dev, in, weight.data(), 1e-5F, out);
    });
    check_rounds_once(*dev, m, n, [&](gpu::tensor_ref out) {
      gpu::layer_norm(*dev, in, weight.data(), bias.data(), 1e-5F, out);
    });
    check_rounds_once(*dev, m, n, [&](gpu::tensor_ref out) {
      gpu::silu_mul(*dev, gpu::view_2d(pairs.data(), dtype::f32, m, 2 * n), out);
    });
    for (const gpu::activation kind : {gpu::activation::relu, gpu::activation::gelu,
                                       gpu::activation::gelu_tanh, gpu::activation::silu})
      check_rounds_once(*dev, m, n,
                        [&](gpu::tensor_ref out) { gpu::activate(*dev, in, kind, out); });
  }
}

TEST_CASE("rows of 16 bits are gathered as they are") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  for (const dtype type : {dtype::f16, dtype::bf16}) {
    std::vector<std::uint16_t> values(5 * 70);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<std::uint16_t>(i * 197);
    device_array<std::uint16_t> x(*dev, values), out(*dev, std::vector<std::uint16_t>(3 * 70));
    device_array<std::int32_t> rows(*dev, {4, 0, 4});
    gpu::gather_rows(*dev, gpu::view_2d(x.data(), type, 5, 70), rows.data(),
                     gpu::view_2d(out.data(), type, 3, 70));
    const auto actual = out.get();
    for (std::size_t i = 0; i < actual.size(); ++i)
      REQUIRE(actual[i] == values[(i / 70 == 1 ? 0 : 4) * 70 + i % 70]);
  }
}

TEST_CASE("attention's portable implementation writes f16 and bf16") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  const auto& portable = dev->ops().portable->get<gpu::detail::attention_backend>();
  constexpr int n_heads = 4, n_kv_heads = 2, head_dim = 24, block_tokens = 8;
  test::ragged_case c({70, 5, 1}, block_tokens, 4);
  c.step(*dev, {0, 1, 2},
         {{.past = 66, .rows = 4}, {.past = 0, .rows = 5}, {.past = 0, .rows = 1}});
  gpu::kv_layer kv;
  kv.type = dtype::f16;
  kv.block_tokens = block_tokens;
  kv.n_blocks = c.n_blocks;
  kv.n_kv_heads = n_kv_heads;
  kv.head_dim = head_dim;
  const auto elements = static_cast<std::size_t>(c.n_blocks * n_kv_heads * block_tokens * head_dim);
  std::vector<std::uint16_t> halves;
  for (const float v : test::random_floats(2 * elements, 5))
    halves.push_back(gpu::detail::f32_to_f16(v));
  device_array<std::uint16_t> memory(*dev, halves);
  kv.keys = memory.data();
  kv.values = memory.data() + elements;
  kv = gpu::detail::checked_kv(kv);
  const long m = c.batch.n_tokens, n = long{n_heads} * head_dim;
  device_array<float> q(*dev, test::random_floats(static_cast<std::size_t>(m * n), 6));
  gpu::attention_args args;
  args.q = gpu::view_2d(q.data(), dtype::f32, m, n);
  args.kv = kv;
  args.n_heads = n_heads;
  args.scale = 0.2F;
  check_rounds_once(*dev, m, n, [&](gpu::tensor_ref out) {
    args.out = out;
    portable.attend.run(*dev, c.batch, args);
  });
}
