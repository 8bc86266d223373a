#include "tools/twill-synth/gguf_kinds.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "models/synth/narrow.hpp"
#include "tools/twill-synth/names.hpp"

namespace twill::synth {
namespace {

constexpr gguf_kind kinds[] = {
    {0, "F32", 1, 4},    {1, "F16", 1, 2},    {30, "BF16", 1, 2},
    {2, "Q4_0", 32, 18}, {3, "Q4_1", 32, 20}, {8, "Q8_0", 32, 34},
};
constexpr int block = 32;

void store_u16(std::byte* out, std::uint16_t bits) {
  std::memcpy(out, &bits, sizeof bits);
}

/// Writes the 4-bit codes of (x - low) * inverse; values i and i + 16 share one byte.
void store_nibbles(const float* x, float low, float inverse, std::byte* out) {
  const auto code = [&](int i) {
    return static_cast<unsigned>(std::clamp((x[i] - low) * inverse + 0.5f, 0.0f, 15.0f));
  };
  for (int i = 0; i < block / 2; ++i)
    out[i] = static_cast<std::byte>(code(i) | code(i + block / 2) << 4);
}

void round_q4_0(const float* x, std::byte* out) {
  // Code 0 stands for -8 * scale. The value of greatest magnitude gets code 0, because the range
  // -8..7 is wider on that side; a scale below 0 gives code 0 a positive value.
  float most = 0;
  for (int i = 0; i < block; ++i)
    if (std::abs(x[i]) > std::abs(most)) most = x[i];
  const float scale = most / -8;
  store_u16(out, narrow_f16(scale));
  store_nibbles(x, -8 * scale, scale == 0 ? 0 : 1 / scale, out + 2);
}

void round_q4_1(const float* x, std::byte* out) {
  const auto [low, high] = std::minmax_element(x, x + block);
  const float scale = (*high - *low) / 15;
  store_u16(out, narrow_f16(scale));
  store_u16(out + 2, narrow_f16(*low));
  store_nibbles(x, *low, scale == 0 ? 0 : 1 / scale, out + 4);
}

void round_q8_0(const float* x, std::byte* out) {
  float most = 0;
  for (int i = 0; i < block; ++i)
    most = std::max(most, std::abs(x[i]));
  const float scale = most / 127;
  const float inverse = scale == 0 ? 0 : 1 / scale;
  store_u16(out, narrow_f16(scale));
  for (int i = 0; i < block; ++i)
    out[2 + i] = static_cast<std::byte>(static_cast<std::int8_t>(std::lround(x[i] * inverse)));
}

} // namespace

const gguf_kind* find_gguf_kind(std::string_view name) {
  for (const gguf_kind& kind : kinds)
    if (name == kind.name) return &kind;
  return nullptr;
}

void round_values(const gguf_kind& kind, const float* values, std::int64_t n, std::byte* out) {
  if (kind.id == 0) {
    std::memcpy(out, values, static_cast<std::size_t>(n) * sizeof(float));
    return;
  }
  for (std::int64_t i = 0; i < n; i += kind.block_values, out += kind.block_bytes) {
    const float* x = values + i;
    switch (kind.id) {
    case 1:
      store_u16(out, narrow_f16(*x));
      break;
    case 30:
      store_u16(out, narrow_bf16(*x));
      break;
    case 2:
      round_q4_0(x, out);
      break;
    case 3:
      round_q4_1(x, out);
      break;
    default:
      round_q8_0(x, out);
    }
  }
}

} // namespace twill::synth
