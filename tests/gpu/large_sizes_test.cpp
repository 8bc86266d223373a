// Indices beyond 2^31: rows so far apart, and arenas so large, that a product in 32 bits would
// overflow. Memory is reserved but not committed, so only touched pages take memory.
#include "tests/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gpu/attention/kv_layer.hpp"
#include "gpu/detail/half.hpp"
#include "gpu/rows/elementwise.hpp"
#include "gpu/rows/norms.hpp"
#include "gpu/rows/rope.hpp"
#include "gpu/sampling/sample.hpp"
#include "tests/gpu/implementations.hpp"
#include "tests/gpu/ragged_case.hpp"
#include "tests/gpu/sparse_memory.hpp"
#include "tests/gpu/tested_device.hpp"

using namespace twill;
using gpu::dtype;
using test::device_array;
using test::sparse_memory;

namespace {

constexpr std::int64_t far = (std::int64_t{1} << 31) + 77; ///< elements from row to row

/// The implementations that compute in this process's own memory.
std::vector<int> host_memory_implementations() {
  if (!test::tests_host()) return {};
  return {test::host_implementation, test::team_implementation, test::serial_implementation};
}

/// Three rows of `cols` floats, `far` apart.
struct far_rows {
  explicit far_rows(std::int64_t columns, dtype type = dtype::f32)
      : memory(3 * far * static_cast<std::int64_t>(gpu::size_of(type))), cols(columns),
        view(gpu::view_2d(memory.as<void>(), type, 3, columns, far)) {}
  float* row(std::int64_t r) const { return memory.as<float>() + r * far; }
  void fill(unsigned seed) const {
    const auto values = test::random_floats(static_cast<std::size_t>(3 * cols), seed);
    for (std::int64_t r = 0; r < 3; ++r)
      std::copy_n(values.data() + r * cols, cols, row(r));
  }
  bool same(const far_rows& other) const {
    for (std::int64_t r = 0; r < 3; ++r)
      if (std::memcmp(row(r), other.row(r), static_cast<std::size_t>(cols) * sizeof(float)) != 0)
        return false;
    return true;
  }
  bool same(const std::vector<float>& dense) const {
    for (std::int64_t r = 0; r < 3; ++r)
      if (std::memcmp(row(r), dense.data() + r * cols,
                      static_cast<std::size_t>(cols) * sizeof(float)) != 0)
        return false;
    return true;
  }
  std::vector<float> dense() const {
    std::vector<float> all;
    for (std::int64_t r = 0; r < 3; ++r)
      all.insert(all.end(), row(r), row(r) + cols);
    return all;
  }

  sparse_memory memory;
  std::int64_t cols;
  gpu::tensor_ref view;
};

} // namespace

TEST_CASE("logits of rows beyond 2^31 elements are drawn from as near ones are") {
  for (const int implementation : host_memory_implementations()) {
    CAPTURE(test::name_of_implementation(implementation));
    auto dev = test::open_implementation(implementation);
    const std::int64_t vocab = 9001;
    const far_rows logits(vocab);
    logits.fill(3);
    device_array<float> near(*dev, logits.dense());
    const auto near_view = gpu::view_2d(near.data(), dtype::f32, 3, vocab);
    device_array<std::int32_t> a(*dev, {-1, -1, -1}), b(*dev, {-2, -2, -2});
    gpu::argmax(*dev, logits.view, a.data());
    gpu::argmax(*dev, near_view, b.data());
    CHECK(a.get() == b.get());
    const auto best = b.get();
    device_array<float> p(*dev, {0, 0, 0}), q(*dev, {1, 1, 1});
    gpu::token_logprobs(*dev, logits.view, a.data(), p.data());
    gpu::token_logprobs(*dev, near_view, a.data(), q.data());
    CHECK(test::same_bits(p.get(), q.get()));
    std::vector<gpu::sample_row> rows(3);
    for (std::size_t i = 0; i < 3; ++i) {
      rows[i].counter = i;
      rows[i].top_p = 0.95f;
      rows[i].n_top = 0;
    }
    device_array<gpu::sample_row> params(*dev, rows);
    const auto draw = [&](const gpu::tensor_ref& x, std::int32_t* tokens, float* logprobs) {
      gpu::sample_args args;
      args.logits = x;
      args.rows = params.data();
      args.any_logprobs = true;
      args.tokens = tokens;
      args.logprobs = logprobs;
      gpu::sample(*dev, args);
    };
    draw(logits.view, a.data(), p.data());
    draw(near_view, b.data(), q.data());
    CHECK(a.get() == b.get());
    CHECK(test::same_bits(p.get(), q.get()));
    CHECK(best != a.get()); // a random draw, not the argmax
  }
}

TEST_CASE("a vocabulary of 2^20 is drawn from to its last token") {
  for (const int implementation : host_memory_implementations()) {
    CAPTURE(test::name_of_implementation(implementation));
    auto dev = test::open_implementation(implementation);
    constexpr std::int64_t vocab = 1 << 20;
    std::vector<float> values(vocab, -1.0f);
    values[vocab - 1] = 30;
    device_array<float> logits(*dev, values);
    device_array<std::int32_t> token(*dev, {-1}), top(*dev, {-1});
    device_array<float> logprob(*dev, {1}), top_logprob(*dev, {1});
    gpu::sample_row row;
    row.top_k = 100000;
    row.top_p = 0.9f;
    row.n_top = 1;
    device_array<gpu::sample_row> params(*dev, {row});
    gpu::sample_args args;
    args.logits = gpu::view_2d(logits.data(), dtype::f32, 1, vocab);
    args.rows = params.data();
    args.any_logprobs = true;
    args.max_top = 1;
    args.tokens = token.data();
    args.logprobs = logprob.data();
    args.top_ids = top.data();
    args.top_logprobs = top_logprob.data();
    gpu::sample(*dev, args);
    CHECK(token.get()[0] == vocab - 1);
    CHECK(top.get()[0] == vocab - 1);
    CHECK(logprob.get()[0] == top_logprob.get()[0]);
  }
}

TEST_CASE("row ops reach rows beyond 2^31 elements") {
  for (const int implementation : host_memory_implementations()) {
    CAPTURE(test::name_of_implementation(implementation));
    auto dev = test::open_implementation(implementation);
    constexpr std::int64_t n = 64;
    const far_rows x(2 * n), out(n), residual(n);
    device_array<float> weight(*dev, test::random_floats(n, 5));
    const std::vector<float> zeros(3 * n);
    device_array<float> dense_out(*dev, zeros), dense_residual(*dev, zeros);
    const auto near = [&](device_array<float>& a, std::int64_t cols) {
      return gpu::view_2d(a.data(), dtype::f32, 3, cols);
    };
    x.fill(7);
    device_array<float> dense_x(*dev, x.dense());
    gpu::silu_mul(*dev, x.view, out.view);
    gpu::silu_mul(*dev, near(dense_x, 2 * n), near(dense_out, n));
    CHECK(out.same(dense_out.get()));

    const auto half = gpu::view_2d(x.view.data, dtype::f32, 3, n, far);
    const auto dense_half = gpu::view_2d(dense_x.data(), dtype::f32, 3, n, 2 * n);
    gpu::activate(*dev, half, gpu::activation::gelu_tanh, out.view);
    gpu::activate(*dev, dense_half, gpu::activation::gelu_tanh, near(dense_out, n));
    CHECK(out.same(dense_out.get()));
    gpu::tensor_ref far_residual = residual.view, near_residual = near(dense_residual, n);
    gpu::rms_norm(*dev, half, weight.data(), 1e-5f, out.view, &far_residual);
    gpu::rms_norm(*dev, dense_half, weight.data(), 1e-5f, near(dense_out, n), &near_residual);
    CHECK(out.same(dense_out.get()));
    CHECK(residual.same(dense_residual.get()));
    gpu::layer_norm(*dev, half, weight.data(), nullptr, 1e-5f, out.view);
    gpu::layer_norm(*dev, dense_half, weight.data(), nullptr, 1e-5f, near(dense_out, n));
    CHECK(out.same(dense_out.get()));
    gpu::head_norm(*dev, out.view, 4, weight.data(), 1e-5f);
    gpu::head_norm(*dev, near(dense_out, n), 4, weight.data(), 1e-5f);
    CHECK(out.same(dense_out.get()));
    gpu::scale_columns(*dev, out.view, weight.data());
    gpu::scale_columns(*dev, near(dense_out, n), weight.data());
    CHECK(out.same(dense_out.get()));
    device_array<std::int32_t> rows(*dev, {2, 0, 2});
    gpu::gather_rows(*dev, half, rows.data(), out.view);
    gpu::gather_rows(*dev, dense_half, rows.data(), near(dense_out, n));
    CHECK(out.same(dense_out.get()));
  }
}

TEST_CASE("keys and values are stored in blocks beyond 2^31 elements and bytes") {
  for (const int implementation : host_memory_implementations()) {
    auto dev = test::open_implementation(implementation);
    constexpr std::int32_t heads = 2, dim = 8, block_tokens = 4, n_blocks = 1 << 28;
    for (const dtype type : {dtype::f16, dtype::i8}) {
      CAPTURE(test::name_of_implementation(implementation), gpu::name_of(type));
      // Blocks of 64 elements; the last begins at element 2^34 - 64.
      const std::int64_t elements = std::int64_t{n_blocks} * heads * dim * block_tokens;
      const std::int64_t scales = std::int64_t{n_blocks} * heads * block_tokens;
      const auto size = static_cast<std::int64_t>(gpu::size_of(type));
      const sparse_memory keys(elements * size), values(elements * size), key_scales(4 * scales),
          value_scales(4 * scales);
      gpu::ragged_batch batch;
      device_array<std::int32_t> positions(*dev, {5, 2}), sequence_of(*dev, {0, 0}),
          table(*dev, {n_blocks - 2, n_blocks - 1});
      batch.n_tokens = 2;
      batch.n_sequences = 1;
      batch.max_blocks = 2;
      batch.positions = positions.data();
      batch.sequence_of = sequence_of.data();
      batch.block_table = table.data();
      const auto cols = std::int64_t{heads} * dim;
      const far_rows q(cols), k(cols), v(cols); // rows that are far apart, too
      k.fill(1);
      v.fill(2);
      const auto two = [&](const far_rows& all) {
        return gpu::view_2d(all.view.data, dtype::f32, 2, cols, far);
      };
      gpu::rope_store_args args;
      args.q = two(q);
      args.k = two(k);
      args.v = two(v);
      args.n_heads = heads;
      args.kv.keys = keys.as<void>();
      args.kv.values = values.as<void>();
      args.kv.type = type;
      args.kv.n_blocks = n_blocks;
      args.kv.n_kv_heads = heads;
      args.kv.block_tokens = block_tokens;
      args.kv.head_dim = dim;
      if (type == dtype::i8) {
        args.kv.key_scales = key_scales.as<float>();
        args.kv.value_scales = value_scales.as<float>();
      }
      gpu::rope_and_store(*dev, batch, args);
      dev->fence();
      for (int row = 0; row < 2; ++row) {
        const std::int64_t block = row == 0 ? n_blocks - 1 : n_blocks - 2, slot = row == 0 ? 1 : 2;
        for (int h = 0; h < heads; ++h)
          for (int d = 0; d < dim; ++d) {
            const std::int64_t head = (block * heads + h) * dim * block_tokens;
            const std::int64_t key = head + d * block_tokens + slot, value = head + slot * dim + d;
            const float wanted[] = {k.row(row)[h * dim + d], v.row(row)[h * dim + d]};
            const std::int64_t scale = (block * heads + h) * block_tokens + slot;
            const auto stored = [&](const sparse_memory& m, const sparse_memory& s,
                                    std::int64_t at) {
              return type == dtype::f16
                         ? gpu::detail::f16_to_f32(m.as<std::uint16_t>()[at])
                         : static_cast<float>(m.as<std::int8_t>()[at]) * s.as<float>()[scale];
            };
            CHECK(stored(keys, key_scales, key) == Approx(wanted[0]).margin(0.02));
            CHECK(stored(values, value_scales, value) == Approx(wanted[1]).margin(0.02));
          }
      }
    }
  }
}

TEST_CASE("more teams than 65,535 each compute their row") {
  const int implementation = GENERATE(from_range(test::implementations()));
  if (implementation == test::team_implementation)
    return; // too slow: its lanes wait for each other in each of the rows
  auto dev = test::open_implementation(implementation);
  constexpr std::int64_t rows = 70001, n = 4;
  const auto values = test::random_floats(rows * n, 9);
  device_array<float> x(*dev, values), out(*dev, std::vector<float>(rows * n));
  device_array<float> weight(*dev, {1, 1, 1, 1});
  gpu::rms_norm(*dev, gpu::view_2d(x.data(), dtype::f32, rows, n), weight.data(), 0,
                gpu::view_2d(out.data(), dtype::f32, rows, n), nullptr);
  device_array<std::int32_t> tokens(*dev, std::vector<std::int32_t>(rows, -1));
  gpu::argmax(*dev, gpu::view_2d(x.data(), dtype::f32, rows, n), tokens.data());
  const auto normed = out.get();
  const auto best = tokens.get();
  for (const std::int64_t r :
       {std::int64_t{0}, std::int64_t{65535}, std::int64_t{65536}, rows - 1}) {
    const float* row = values.data() + r * n;
    CHECK(best[static_cast<std::size_t>(r)] == std::max_element(row, row + n) - row);
    double squares = 0;
    for (std::int64_t i = 0; i < n; ++i)
      squares += double{row[i]} * double{row[i]};
    CHECK(double{normed[static_cast<std::size_t>(r * n)]} ==
          Approx(double{row[0]} / std::sqrt(squares / n)).epsilon(1e-4));
  }
}
