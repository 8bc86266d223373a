#include "tests/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gpu/detail/kernel_math.hpp"
#include "gpu/rows/rope.hpp"
#include "tests/gpu/implementations.hpp"
#include "tests/gpu/load_kv.hpp"
#include "tests/gpu/ragged_case.hpp"
#include "tests/support/worse.hpp"

using namespace twill;
using gpu::dtype;
using gpu::rope_kind;
using test::device_array;
using test::ragged_case;

namespace {

struct rope_shape {
  rope_kind rope;
  std::int32_t head_dim, rotary_dim;
  dtype type;
};

/// x rotated by the angles of `position`, in double.
std::vector<double> rotated(const float* x, const rope_shape& s, std::int32_t position,
                            const std::vector<float>& inv_freq) {
  std::vector<double> out(x, x + s.head_dim);
  if (s.rope == rope_kind::none) return out;
  for (std::int32_t i = 0; i < s.rotary_dim / 2; ++i) {
    const std::int32_t a = s.rope == rope_kind::half_split ? i : 2 * i;
    const std::int32_t b = s.rope == rope_kind::half_split ? i + s.rotary_dim / 2 : 2 * i + 1;
    const double angle =
        double{static_cast<float>(position) * inv_freq[static_cast<std::size_t>(i)]};
    out[static_cast<std::size_t>(a)] =
        double{x[a]} * std::cos(angle) - double{x[b]} * std::sin(angle);
    out[static_cast<std::size_t>(b)] =
        double{x[b]} * std::cos(angle) + double{x[a]} * std::sin(angle);
  }
  return out;
}

float read_back(const std::vector<unsigned char>& arena, dtype type, std::size_t at) {
  return gpu::load_kv(arena.data(), type, static_cast<std::int64_t>(at));
}

} // namespace

TEST_CASE("rotary and the KV store agree with a naive oracle in every layout and KV type") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  const std::int32_t n_heads = 3, n_kv = 2, block_tokens = 4;
  for (const rope_shape& s : {rope_shape{rope_kind::none, 10, 0, dtype::f32},
                              rope_shape{rope_kind::half_split, 64, 64, dtype::f32},
                              rope_shape{rope_kind::interleaved, 64, 64, dtype::f16},
                              rope_shape{rope_kind::half_split, 80, 20, dtype::bf16},
                              rope_shape{rope_kind::interleaved, 40, 38, dtype::f32},
                              rope_shape{rope_kind::interleaved, 128, 64, dtype::bf16},
                              rope_shape{rope_kind::half_split, 50, 50, dtype::f16}}) {
    CAPTURE(static_cast<int>(s.rope), s.head_dim, s.rotary_dim);
    ragged_case rows({9, 2, 4000}, block_tokens, 3);
    rows.step(*dev, {2, 0, 1}, {{3990, 10}, {4, 5}, {1, 1}});
    const auto n = rows.batch.n_tokens;
    const auto count = [&](std::int32_t heads) {
      return static_cast<std::size_t>(n * heads * s.head_dim);
    };
    std::vector<float> inv_freq;
    for (std::int32_t i = 0; i < s.rotary_dim / 2; ++i)
      inv_freq.push_back(
          std::pow(10000.0f, -2.0f * static_cast<float>(i) / static_cast<float>(s.rotary_dim)));
    const auto q = test::random_floats(count(n_heads), 1);
    const auto k = test::random_floats(count(n_kv), 2);
    const auto v = test::random_floats(count(n_kv), 3);
    device_array<float> dq(*dev, q), dk(*dev, k), dv(*dev, v), freq(*dev, inv_freq);
    device_array<float> cos(*dev,
                            std::vector<float>(static_cast<std::size_t>(n * s.rotary_dim / 2)));
    device_array<float> sin(*dev,
                            std::vector<float>(static_cast<std::size_t>(n * s.rotary_dim / 2)));
    const std::size_t arena =
        static_cast<std::size_t>(rows.n_blocks * n_kv * block_tokens * s.head_dim);
    const std::vector<unsigned char> empty(arena * gpu::size_of(s.type), 0xab);
    device_array<unsigned char> keys(*dev, empty), values(*dev, empty);

    gpu::rope_store_args args;
    args.q = gpu::view_2d(dq.data(), dtype::f32, n, n_heads * s.head_dim);
    args.k = gpu::view_2d(dk.data(), dtype::f32, n, n_kv * s.head_dim);
    args.v = gpu::view_2d(dv.data(), dtype::f32, n, n_kv * s.head_dim);
    args.n_heads = n_heads;
    args.rope = s.rope;
    args.rotary_dim = s.rotary_dim;
    args.kv = {keys.data(), values.data(), s.type, rows.n_blocks, n_kv, block_tokens, s.head_dim};
    if (s.rope != rope_kind::none) {
      args.cos = gpu::view_2d(cos.data(), dtype::f32, n, s.rotary_dim / 2);
      args.sin = gpu::view_2d(sin.data(), dtype::f32, n, s.rotary_dim / 2);
      gpu::rope_angles(*dev, rows.batch, freq.data(), s.rotary_dim, args.cos, args.sin);
    }
    gpu::rope_and_store(*dev, rows.batch, args);

    const auto got_q = dq.get();
    const auto got_keys = keys.get();
    const auto got_values = values.get();
    const double tolerance = s.type == dtype::f32 ? 1e-6 : s.type == dtype::f16 ? 2e-3 : 2e-2;
    double worst_q = 0, worst_k = 0, worst_v = 0;
    std::size_t written = 0;
    for (std::int32_t t = 0; t < n; ++t) {
      const auto row = static_cast<std::size_t>(t);
      const std::int32_t p = rows.positions[row];
      for (std::int32_t h = 0; h < n_heads; ++h) {
        const auto at = static_cast<std::size_t>((t * n_heads + h) * s.head_dim);
        const auto expected = rotated(q.data() + at, s, p, inv_freq);
        for (std::size_t d = 0; d < expected.size(); ++d)
          worst_q = twill::test::worse(worst_q, std::abs(expected[d] - double{got_q[at + d]}));
      }
      const std::int32_t block = rows.block_table[static_cast<std::size_t>(
          rows.sequence_of[row] * rows.max_blocks + p / block_tokens)];
      for (std::int32_t h = 0; h < n_kv; ++h) {
        const auto from = static_cast<std::size_t>((t * n_kv + h) * s.head_dim);
        const auto to = static_cast<std::size_t>(
            ((block * n_kv + h) * block_tokens + p % block_tokens) * s.head_dim);
        const auto expected = rotated(k.data() + from, s, p, inv_freq);
        for (std::size_t d = 0; d < expected.size(); ++d, ++written) {
          const auto key_at = static_cast<std::size_t>((block * n_kv + h) * s.head_dim) *
                                  static_cast<std::size_t>(block_tokens) +
                              d * static_cast<std::size_t>(block_tokens) +
                              static_cast<std::size_t>(p % block_tokens);
          worst_k = twill::test::worse(
              worst_k, std::abs(expected[d] - double{read_back(got_keys, s.type, key_at)}));
          worst_v =
              twill::test::worse(worst_v, std::abs(double{v[from + d]} -
                                                   double{read_back(got_values, s.type, to + d)}));
        }
      }
    }
    CHECK(worst_q < 1e-6);
    CHECK(worst_k < tolerance);
    CHECK(worst_v < tolerance);
    // Elements of all other positions keep the pattern that they were filled with.
    const std::size_t bytes = gpu::size_of(s.type);
    std::size_t changed = 0;
    for (std::size_t i = 0; i < arena; ++i)
      changed += std::memcmp(got_keys.data() + i * bytes, empty.data(), bytes) != 0;
    CHECK(changed <= written);
    CHECK(changed + 2 >= written); // a value may happen to equal the pattern
  }
}

TEST_CASE("i8 KV keeps each head of each token in steps of its largest magnitude / 127") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  for (const std::int32_t head_dim : {1, 8, 40, 50, 128, 256}) {
    CAPTURE(head_dim);
    const std::int32_t n_kv = 3, block_tokens = 4;
    ragged_case rows({9, 2}, block_tokens, 3);
    rows.step(*dev, {1, 0}, {{0, 2}, {1, 8}});
    const auto n = rows.batch.n_tokens;
    auto k = test::random_floats(static_cast<std::size_t>(n * n_kv * head_dim), 1, 3.0f);
    auto v = test::random_floats(k.size(), 2);
    std::fill_n(k.begin(), head_dim, 0.0f);   // a row of zeros
    std::fill_n(v.begin(), head_dim, 1e-38f); // one so small that zeros are stored
    device_array<float> dq(*dev, std::vector<float>(k.size())), dk(*dev, k), dv(*dev, v);
    const auto places = static_cast<std::size_t>(rows.n_blocks * n_kv * block_tokens);
    device_array<std::int8_t> keys(*dev, std::vector<std::int8_t>(places * head_dim, 77));
    device_array<std::int8_t> values(*dev, std::vector<std::int8_t>(places * head_dim, 77));
    device_array<float> key_scales(*dev, std::vector<float>(places, -1));
    device_array<float> value_scales(*dev, std::vector<float>(places, -1));
    gpu::rope_store_args args;
    args.q = gpu::view_2d(dq.data(), dtype::f32, n, n_kv * head_dim);
    args.k = gpu::view_2d(dk.data(), dtype::f32, n, n_kv * head_dim);
    args.v = gpu::view_2d(dv.data(), dtype::f32, n, n_kv * head_dim);
    args.n_heads = n_kv;
    args.kv = {keys.data(),  values.data(), dtype::i8,         rows.n_blocks,      n_kv,
               block_tokens, head_dim,      key_scales.data(), value_scales.data()};
    gpu::rope_and_store(*dev, rows.batch, args);
    std::size_t written = 0;
    for (const bool key : {true, false}) {
      const auto codes = key ? keys.get() : values.get();
      const auto scales = key ? key_scales.get() : value_scales.get();
      for (std::int32_t t = 0; t < n; ++t)
        for (std::int32_t h = 0; h < n_kv; ++h) {
          const float* x = (key ? k : v).data() + (t * n_kv + h) * head_dim;
          const std::int32_t p = rows.positions[static_cast<std::size_t>(t)];
          const std::int32_t block = rows.block_table[static_cast<std::size_t>(
              rows.sequence_of[static_cast<std::size_t>(t)] * rows.max_blocks + p / block_tokens)];
          const auto place =
              static_cast<std::size_t>((block * n_kv + h) * block_tokens + p % block_tokens);
          float largest = 0;
          for (std::int32_t d = 0; d < head_dim; ++d)
            largest = std::max(largest, std::abs(x[d]));
          const bool zero = largest <= 1e-30f;
          REQUIRE(scales[place] == (zero ? 0.0f : largest / 127));
          ++written;
          for (std::int32_t d = 0; d < head_dim; ++d) {
            const double steps = zero ? 0.0 : double{x[d]} * double{127 / largest};
            const auto at = static_cast<std::size_t>(
                key ? ((block * n_kv + h) * head_dim + d) * block_tokens + p % block_tokens
                    : static_cast<std::int32_t>(place) * head_dim + d);
            REQUIRE(codes[at] == std::nearbyint(steps));
          }
        }
      if (!key) continue;
      std::size_t untouched = 0;
      for (const float s : scales)
        untouched += s == -1;
      CHECK(untouched + written == places);
    }
  }
}

TEST_CASE("log-n scales queries beyond the training length, and them alone") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  for (const rope_kind rope : {rope_kind::none, rope_kind::half_split}) {
    const std::int32_t head_dim = 24, n_heads = 2, length = 16;
    ragged_case rows({40, 3}, 8, 3);
    rows.step(*dev, {1, 0}, {{0, 3}, {10, 30}});
    const auto n = rows.batch.n_tokens;
    const auto x = test::random_floats(static_cast<std::size_t>(n * n_heads * head_dim), 1);
    std::vector<float> plain, scaled;
    for (const std::int32_t log_n : {0, length}) {
      device_array<float> q(*dev, x), k(*dev, x), v(*dev, x);
      const auto arena = static_cast<std::size_t>(rows.n_blocks * n_heads * 8 * head_dim);
      device_array<float> keys(*dev, std::vector<float>(arena)),
          values(*dev, std::vector<float>(arena));
      device_array<float> cos(*dev, test::random_floats(static_cast<std::size_t>(n * 12), 2));
      device_array<float> sin(*dev, test::random_floats(static_cast<std::size_t>(n * 12), 3));
      gpu::rope_store_args args;
      args.q = gpu::view_2d(q.data(), dtype::f32, n, n_heads * head_dim);
      args.k = gpu::view_2d(k.data(), dtype::f32, n, n_heads * head_dim);
      args.v = gpu::view_2d(v.data(), dtype::f32, n, n_heads * head_dim);
      args.n_heads = n_heads;
      args.rope = rope;
      args.rotary_dim = head_dim;
      args.cos = gpu::view_2d(cos.data(), dtype::f32, n, head_dim / 2);
      args.sin = gpu::view_2d(sin.data(), dtype::f32, n, head_dim / 2);
      args.kv = {keys.data(), values.data(), dtype::f32, rows.n_blocks, n_heads, 8, head_dim};
      args.log_n_length = log_n;
      gpu::rope_and_store(*dev, rows.batch, args);
      auto all = q.get();
      const auto stored = keys.get();
      all.insert(all.end(), stored.begin(), stored.end());
      (log_n == 0 ? plain : scaled) = all;
    }
    for (std::size_t i = 0; i < plain.size(); ++i) {
      double factor = 1;
      if (i < x.size()) {
        const std::int32_t p = rows.positions[i / static_cast<std::size_t>(n_heads * head_dim)];
        if (p + 1 > length) factor = std::log(p + 1.0) / std::log(double{length});
      }
      if (factor == 1)
        REQUIRE(scaled[i] == plain[i]);
      else
        REQUIRE(scaled[i] == Approx(plain[i] * factor).epsilon(1e-6));
    }
  }
}

TEST_CASE("angles carry a magnitude") {
  auto dev = test::open_implementation(GENERATE(from_range(test::implementations())));
  ragged_case rows({9, 30, 2}, 4, 3);
  rows.step(*dev, {1, 0, 2}, {{20, 10}, {4, 5}, {1, 1}});
  const auto n = rows.batch.n_tokens;
  const std::vector<float> inv_freq{0.5f, 0.02f, 0.003f};
  device_array<float> freq(*dev, inv_freq);
  device_array<float> cos(*dev, std::vector<float>(static_cast<std::size_t>(n * 3)));
  device_array<float> sin(*dev, std::vector<float>(static_cast<std::size_t>(n * 3)));
  gpu::rope_angles(*dev, rows.batch, freq.data(), 6, gpu::view_2d(cos.data(), dtype::f32, n, 3),
                   gpu::view_2d(sin.data(), dtype::f32, n, 3), 1.25f);
  const auto c = cos.get(), s = sin.get();
  for (std::size_t t = 0; t < static_cast<std::size_t>(n); ++t)
    for (std::size_t d = 0; d < 3; ++d) {
      const float angle = static_cast<float>(rows.positions[t]) * inv_freq[d];
      REQUIRE(c[t * 3 + d] == Approx(1.25 * std::cos(double{angle})).margin(1e-6));
      REQUIRE(s[t * 3 + d] == Approx(1.25 * std::sin(double{angle})).margin(1e-6));
    }
}

TEST_CASE("16-bit floats round to nearest even and come back exactly") {
  using namespace gpu::detail;
  for (std::uint32_t h = 0; h < 65536; ++h) {
    const auto bits = static_cast<std::uint16_t>(h);
    const float f16 = f16_to_f32(bits);
    const float bf16 = bf16_to_f32(bits);
    if (f16 == f16) REQUIRE(f32_to_f16(f16) == bits);
    if (f16 != f16) REQUIRE(f16_to_f32(f32_to_f16(f16)) != f16_to_f32(f32_to_f16(f16)));
    if (bf16 == bf16) REQUIRE(f32_to_bf16(bf16) == bits);
    if (bf16 != bf16) REQUIRE(bf16_to_f32(f32_to_bf16(bf16)) != bf16_to_f32(f32_to_bf16(bf16)));
  }
  CHECK(f16_to_f32(0x3c00) == 1.0f);
  CHECK(f16_to_f32(0x0001) == std::ldexp(1.0f, -24));
  CHECK(bf16_to_f32(0x3f80) == 1.0f);
  CHECK(f32_to_f16(1.0f + std::ldexp(1.0f, -11)) == 0x3c00);     // tie: down to even
  CHECK(f32_to_f16(1.0f + 3 * std::ldexp(1.0f, -11)) == 0x3c02); // tie: up to even
  CHECK(f32_to_f16(65520.0f) == 0x7c00);
  CHECK(f32_to_f16(-65519.0f) == 0xfbff);
  CHECK(f32_to_bf16(1.0f + std::ldexp(1.0f, -8)) == 0x3f80);
  CHECK(f32_to_bf16(1.0f + 3 * std::ldexp(1.0f, -8)) == 0x3f82);
  CHECK(f32_to_bf16(std::numeric_limits<float>::max()) == 0x7f80);
}

TEST_CASE("fast_exp is within two units in the last place") {
  for (float x = -87.2f; x < 88.2f; x += 0.00137f) {
    const double exact = std::exp(double{x});
    const double ulp = std::ldexp(1.0, std::ilogb(exact) - 23);
    REQUIRE(std::abs(double{gpu::detail::fast_exp(x)} - exact) <= 2 * ulp);
  }
}
