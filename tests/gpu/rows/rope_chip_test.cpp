// A GPU applies rotary position embedding (RoPE) and stores keys and values with another
// implementation than the host's: both must give the same bits.
#include "tests/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "gpu/rows/detail/rope_kernels.hpp"
#include "gpu/rows/rope.hpp"
#include "tests/gpu/implementations.hpp"
#include "tests/gpu/ragged_case.hpp"
#include "tests/support/worse.hpp"

using namespace twill;
using gpu::dtype;
using gpu::rope_kind;
using test::device_array;
using bytes = std::vector<unsigned char>;

TEST_CASE("rotary and the KV store have the same bits in the host's and a GPU's implementation") {
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16, dtype::i8})
    for (const rope_kind rope : {rope_kind::none, rope_kind::half_split, rope_kind::interleaved}) {
      CAPTURE(static_cast<int>(type), static_cast<int>(rope));
      const std::int32_t n_heads = 3, n_kv = 2, head_dim = 40, rotary_dim = 38, block_tokens = 4;
      std::vector<bytes> stored;
      std::vector<std::vector<float>> floats;
      for (const int implementation : {test::host_implementation, test::team_implementation}) {
        auto dev = test::open_implementation(implementation);
        test::ragged_case rows({9, 2, 400}, block_tokens, 3);
        rows.step(*dev, {2, 0, 1}, {{390, 10}, {4, 5}, {1, 1}});
        const auto n = rows.batch.n_tokens;
        const auto count = [&](std::int32_t cols) { return static_cast<std::size_t>(n * cols); };
        device_array<float> q(*dev, test::random_floats(count(n_heads * head_dim), 1));
        device_array<float> k(*dev, test::random_floats(count(n_kv * head_dim), 2));
        device_array<float> v(*dev, test::random_floats(count(n_kv * head_dim), 3));
        device_array<float> cos(*dev, test::random_floats(count(rotary_dim / 2), 4));
        device_array<float> sin(*dev, test::random_floats(count(rotary_dim / 2), 5));
        const auto places = static_cast<std::size_t>(rows.n_blocks * n_kv * block_tokens);
        const bytes empty(places * head_dim * gpu::size_of(type), 0xab);
        device_array<unsigned char> keys(*dev, empty), values(*dev, empty);
        device_array<float> key_scales(*dev, std::vector<float>(places, -1));
        device_array<float> value_scales(*dev, std::vector<float>(places, -1));
        gpu::rope_store_args args;
        args.q = gpu::view_2d(q.data(), dtype::f32, n, n_heads * head_dim);
        args.k = gpu::view_2d(k.data(), dtype::f32, n, n_kv * head_dim);
        args.v = gpu::view_2d(v.data(), dtype::f32, n, n_kv * head_dim);
        args.n_heads = n_heads;
        args.rope = rope;
        args.rotary_dim = rotary_dim;
        args.log_n_length = 100;
        args.cos = gpu::view_2d(cos.data(), dtype::f32, n, rotary_dim / 2);
        args.sin = gpu::view_2d(sin.data(), dtype::f32, n, rotary_dim / 2);
        args.kv = {keys.data(),  values.data(), type,    rows.n_blocks, n_kv,
                   block_tokens, head_dim,      nullptr, nullptr};
        if (type == dtype::i8) {
          args.kv.key_scales = key_scales.data();
          args.kv.value_scales = value_scales.data();
        }
        gpu::rope_and_store(*dev, rows.batch, args);
        for (const auto* one : {&keys, &values})
          stored.push_back(one->get());
        for (const auto* one : {&q, &k, &key_scales, &value_scales})
          floats.push_back(one->get());
      }
      for (std::size_t i = 0; i < 2; ++i)
        CHECK(stored[i] == stored[i + 2]);
      for (std::size_t i = 0; i < 4; ++i)
        CHECK(floats[i] == floats[i + 4]);
    }
}

TEST_CASE("a chip's cosine and sine are within 1e-7 for every angle of a position") {
  double worst = 0;
  const auto judge = [&](float x) {
    const auto of = gpu::detail::cosine_and_sine_of(x);
    worst = twill::test::worse(worst, std::abs(double{of.cos} - std::cos(double{x})));
    worst = twill::test::worse(worst, std::abs(double{of.sin} - std::sin(double{x})));
  };
  for (float x = 0; x < 100; x += 0.00137f) {
    judge(x);
    judge(-x);
  }
  for (float x = 100; x < 2.1e9f; x *= 1.0001f)
    judge(x);
  INFO(worst);
  CHECK(worst < 1e-7);
}
