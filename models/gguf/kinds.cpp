#include "models/gguf/kinds.hpp"

#include <array>
#include <cstring>

#include "models/detail/half.hpp"

namespace twill::models::gguf {
namespace {

using gpu::weight_kind;

// Ids that decode_row tells apart.
constexpr std::uint32_t q4_0 = 2;
constexpr std::uint32_t q4_1 = 3;

constexpr kind_info unread(std::uint32_t id, const char* name) {
  return {id, name, 1, 0, weight_kind::f32};
}

constexpr std::array kinds = {
    kind_info{0, "F32", 1, 4, weight_kind::f32},
    kind_info{1, "F16", 1, 2, weight_kind::f16},
    kind_info{q4_0, "Q4_0", 32, 18, weight_kind::grouped_u4},
    kind_info{q4_1, "Q4_1", 32, 20, weight_kind::grouped_u4},
    kind_info{8, "Q8_0", 32, 34, weight_kind::grouped_u8},
    kind_info{30, "BF16", 1, 2, weight_kind::bf16},
    unread(6, "Q5_0"),
    unread(7, "Q5_1"),
    unread(9, "Q8_1"),
    unread(10, "Q2_K"),
    unread(11, "Q3_K"),
    unread(12, "Q4_K"),
    unread(13, "Q5_K"),
    unread(14, "Q6_K"),
    unread(15, "Q8_K"),
    unread(16, "IQ2_XXS"),
    unread(17, "IQ2_XS"),
    unread(18, "IQ3_XXS"),
    unread(19, "IQ1_S"),
    unread(20, "IQ4_NL"),
    unread(21, "IQ3_S"),
    unread(22, "IQ2_S"),
    unread(23, "IQ4_XS"),
    unread(24, "I8"),
    unread(25, "I16"),
    unread(26, "I32"),
    unread(27, "I64"),
    unread(28, "F64"),
    unread(29, "IQ1_M"),
    unread(34, "TQ1_0"),
    unread(35, "TQ2_0"),
    unread(39, "MXFP4"),
};

std::uint16_t load_u16(const std::byte* p) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, p, sizeof bits);
  return bits;
}

/// 16 bytes hold 32 codes: low nibbles are values 0..15, high nibbles 16..31.
void split_nibbles(const std::byte* packed, std::uint8_t* codes) {
  for (int i = 0; i < 16; ++i) {
    const auto byte = static_cast<std::uint8_t>(packed[i]);
    codes[i] = byte & 0x0fU;
    codes[i + 16] = byte >> 4;
  }
}

} // namespace

const kind_info* find_kind(std::uint32_t id) {
  for (const kind_info& kind : kinds)
    if (kind.id == id) return &kind;
  return nullptr;
}

void decode_row(const kind_info& kind, const std::byte* row, std::int64_t cols,
                const gpu::grouped_row& out) {
  const std::int64_t n_blocks = cols / kind.block_values;
  for (std::int64_t b = 0; b < n_blocks; ++b) {
    const std::byte* block = row + b * kind.block_bytes;
    std::uint8_t* codes = out.codes + b * kind.block_values;
    const float scale = widen_f16(load_u16(block));
    out.scales[b] = scale;
    if (kind.id == q4_1) { // d, m, nibbles: w = d * q + m
      out.offsets[b] = widen_f16(load_u16(block + 2));
      split_nibbles(block + 4, codes);
    } else if (kind.id == q4_0) { // d, nibbles: w = d * (q - 8)
      out.offsets[b] = -8.0f * scale;
      split_nibbles(block + 2, codes);
    } else { // Q8_0: d, int8: w = d * q
      out.offsets[b] = -128.0f * scale;
      for (int i = 0; i < 32; ++i)
        codes[i] = static_cast<std::uint8_t>(static_cast<std::uint8_t>(block[2 + i]) ^ 0x80U);
    }
  }
}

void widen_values(const kind_info& kind, const std::byte* values, std::int64_t n, float* out) {
  if (kind.packed == weight_kind::f32) {
    std::memcpy(out, values, static_cast<std::size_t>(n) * sizeof(float));
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint16_t bits = load_u16(values + 2 * i);
    out[i] = kind.packed == weight_kind::f16 ? widen_f16(bits) : widen_bf16(bits);
  }
}

} // namespace twill::models::gguf
