#include "tests/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/attention/kv4.hpp"
#include "gpu/detail/half.hpp"
#include "tests/gpu/implementations.hpp"
#include "tests/gpu/ragged_case.hpp"

using namespace twill;
using gpu::dtype;
using test::device_array;

namespace {

struct shape {
  dtype type;
  std::int32_t n_kv_heads, head_dim, block_tokens;
};

std::vector<unsigned char> stored(const std::vector<float>& x, dtype type) {
  std::vector<unsigned char> bytes(x.size() * gpu::size_of(type));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint16_t half =
        type == dtype::f16 ? gpu::detail::f32_to_f16(x[i]) : gpu::detail::f32_to_bf16(x[i]);
    if (type == dtype::f32)
      std::memcpy(bytes.data() + 4 * i, &x[i], 4);
    else
      std::memcpy(bytes.data() + 2 * i, &half, 2);
  }
  return bytes;
}

std::vector<float> loaded(const std::vector<unsigned char>& bytes, dtype type) {
  std::vector<float> x(bytes.size() / gpu::size_of(type));
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::uint16_t half;
    if (type == dtype::f32) {
      std::memcpy(&x[i], bytes.data() + 4 * i, 4);
      continue;
    }
    std::memcpy(&half, bytes.data() + 2 * i, 2);
    x[i] = type == dtype::f16 ? gpu::detail::f16_to_f32(half) : gpu::detail::bf16_to_f32(half);
  }
  return x;
}

} // namespace

TEST_CASE("4-bit KV comes back within half a step of each group of 64 dimensions", "[kv4]") {
  auto device = test::open_implementation(GENERATE(from_range(test::implementations())));
  gpu::device& dev = *device;
  constexpr std::int32_t n_blocks = 7, first = 2, count = 4;
  constexpr std::int32_t near = 4; // blocks of the arena's first part
  constexpr std::int64_t apart = 40;
  const std::vector<shape> shapes = {{dtype::f16, 3, 64, 16}, {dtype::bf16, 2, 128, 16},
                                     {dtype::f32, 1, 80, 8},  {dtype::f16, 1, 96, 32},
                                     {dtype::f32, 5, 2, 16},  {dtype::f16, 2, 256, 256}};
  for (const shape& s : shapes) {
    CAPTURE(s.n_kv_heads, s.head_dim, s.block_tokens, static_cast<int>(s.type));
    const std::int64_t block = std::int64_t{s.n_kv_heads} * s.head_dim * s.block_tokens;
    gpu::kv_layer kv;
    kv.type = s.type;
    kv.n_blocks = near;
    kv.n_kv_heads = s.n_kv_heads;
    kv.block_tokens = s.block_tokens;
    kv.head_dim = s.head_dim;
    kv.block_stride = block + 24; // blocks need not follow each other
    kv.apart = apart;
    REQUIRE(gpu::has_kv4(kv));
    const auto size = static_cast<std::size_t>(n_blocks * kv.block_stride + apart);
    auto keys = test::random_floats(size, 1), values = test::random_floats(size, 2, 0.05F);
    for (std::size_t i = 0; i < size; i += 97)
      keys[i] *= 40; // outliers
    for (auto* x : {&keys, &values})
      *x = loaded(stored(*x, s.type), s.type);
    device_array<unsigned char> k(dev, stored(keys, s.type)), v(dev, stored(values, s.type));
    kv.keys = k.data();
    kv.values = v.data();
    const std::int64_t stride = gpu::kv4_block_bytes(kv) + 64;
    // Each value takes half a byte, and each group of 64 values takes two f16 more.
    if (s.head_dim % 64 == 0) CHECK(gpu::kv4_block_bytes(kv) == 2 * block * 9 / 16);
    const device_array<unsigned char> packed(
        dev, std::vector<unsigned char>(static_cast<std::size_t>(n_blocks * stride), 0x77));
    gpu::kv4_pack(dev, kv, first, count, packed.data(), stride);

    const std::vector<float> nothing(size, -3);
    device_array<unsigned char> k2(dev, stored(nothing, s.type)), v2(dev, stored(nothing, s.type));
    kv.keys = k2.data();
    kv.values = v2.data();
    gpu::kv4_unpack(dev, kv, first, count, packed.data(), stride);
    const auto packed_bytes = packed.get();
    for (std::int64_t b = 0; b < n_blocks; ++b) {
      const bool named = b >= first && b < first + count;
      const auto at = packed_bytes.begin() + b * stride;
      const bool untouched = std::all_of(named ? at + gpu::kv4_block_bytes(kv) : at, at + stride,
                                         [](unsigned char c) { return c == 0x77; });
      CHECK(untouched);
    }

    const auto judge = [&](const std::vector<float>& was, const std::vector<float>& is,
                           bool positions_side_by_side) {
      int wrong = 0;
      for (std::int64_t b = 0; b < n_blocks; ++b)
        for (std::int32_t h = 0; h < s.n_kv_heads; ++h)
          for (std::int32_t t = 0; t < s.block_tokens; ++t)
            for (std::int32_t g = 0; g < s.head_dim; g += 64) {
              const auto index = [&](std::int32_t d) {
                const std::int64_t head = b * kv.block_stride + (b < near ? 0 : apart) +
                                          std::int64_t{h} * s.head_dim * s.block_tokens;
                return static_cast<std::size_t>(head + (positions_side_by_side
                                                            ? std::int64_t{d} * s.block_tokens + t
                                                            : std::int64_t{t} * s.head_dim + d));
              };
              const std::int32_t end = std::min(g + 64, s.head_dim);
              float low = INFINITY, high = -INFINITY;
              for (std::int32_t d = g; d < end; ++d) {
                low = std::min(low, was[index(d)]);
                high = std::max(high, was[index(d)]);
              }
              const float top = std::max(std::abs(low), std::abs(high));
              for (std::int32_t d = g; d < end; ++d) {
                const float difference = std::abs(is[index(d)] - was[index(d)]);
                const bool named = b >= first && b < first + count;
                const bool close =
                    named ? difference <= (high - low) / 30 + top / 250 : is[index(d)] == -3;
                wrong += close ? 0 : 1;
              }
            }
      return wrong;
    };
    CHECK(judge(keys, loaded(k2.get(), s.type), true) == 0);
    CHECK(judge(values, loaded(v2.get(), s.type), false) == 0);
  }
}

TEST_CASE("4-bit KV keeps a group of one value, and cuts what f16 cannot hold", "[kv4]") {
  auto device = test::open_implementation(GENERATE(from_range(test::implementations())));
  gpu::device& dev = *device;
  gpu::kv_layer kv;
  kv.type = dtype::f32;
  kv.n_blocks = kv.n_kv_heads = 1;
  kv.block_tokens = 8;
  kv.head_dim = 64;
  const std::vector<float> same(512, 0.375F);
  std::vector<float> large(512, 1.0F);
  large[5] = 1e30F;
  device_array<float> k(dev, same), v(dev, large);
  kv.keys = k.data();
  kv.values = v.data();
  const std::int64_t bytes = gpu::kv4_block_bytes(kv);
  const device_array<unsigned char> packed(
      dev, std::vector<unsigned char>(static_cast<std::size_t>(bytes)));
  gpu::kv4_pack(dev, kv, 0, 1, packed.data(), bytes);
  gpu::kv4_unpack(dev, kv, 0, 1, packed.data(), bytes);
  CHECK(k.get() == same);
  const auto cut = v.get();
  CHECK(std::abs(cut[5] - 65504) < 65);
  CHECK(cut[64] == 1.0F);
  kv.type = dtype::i8;
  CHECK_FALSE(gpu::has_kv4(kv));
}
