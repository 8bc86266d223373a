#include "models/checkpoint/gguf/blocks.hpp"

#include <cstring>

#include "models/checkpoint/half.hpp"

namespace twill::models::gguf {
namespace {

float load_f16(const std::byte* p) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, p, sizeof bits);
  return widen_f16(bits);
}

unsigned at(const std::byte* p, int i) {
  return std::to_integer<unsigned>(p[i]);
}

/// Splits 16 bytes that hold 32 codes: the low nibbles are codes 0..15, the high nibbles 16..31.
void split_nibbles(const std::byte* packed, std::uint8_t* codes) {
  for (int i = 0; i < 16; ++i) {
    codes[i] = static_cast<std::uint8_t>(at(packed, i) & 0x0fU);
    codes[i + 16] = static_cast<std::uint8_t>(at(packed, i) >> 4);
  }
}

/// Joins the low four bits of 32 codes, from 16 bytes, with the fifth bits from `high`.
void split_five_bits(const std::byte* high, const std::byte* packed, std::uint8_t* codes) {
  split_nibbles(packed, codes);
  for (int i = 0; i < 32; ++i)
    codes[i] |= static_cast<std::uint8_t>((at(high, i / 8) >> (i % 8) & 1U) << 4);
}

/// Scale and minimum of group j of a Q4_K or Q5_K block. The block has 8 such pairs of 6-bit
/// numbers in 12 bytes.
struct scale_min {
  unsigned scale;
  unsigned min;
};
scale_min six_bit_pair(const std::byte* packed, int j) {
  if (j < 4) return {at(packed, j) & 63U, at(packed, j + 4) & 63U};
  return {(at(packed, j + 4) & 0x0fU) | at(packed, j - 4) >> 6 << 4,
          at(packed, j + 4) >> 4 | at(packed, j) >> 6 << 4};
}

/// Decodes scales and offsets of the 8 groups (32 values each) of a Q4_K or Q5_K block. The block
/// begins with the f16 numbers d and dmin, which multiply all scales and all minimums, and 12 bytes
/// that hold the 8 pairs of scale and minimum.
void decode_six_bit_terms(const std::byte* block, const decoded_block& out) {
  const float d = load_f16(block), dmin = load_f16(block + 2);
  for (int g = 0; g < 8; ++g) {
    const scale_min s = six_bit_pair(block + 4, g);
    out.scales[g] = d * static_cast<float>(s.scale);
    out.offsets[g] = -(dmin * static_cast<float>(s.min));
  }
}

/// Splits 128 bytes that hold 256 codes: each 32 bytes hold 32 codes in their low nibbles, then 32
/// in their high nibbles.
void decode_four_bits(const std::byte* packed, std::uint8_t* codes) {
  for (int chunk = 0; chunk < 4; ++chunk)
    for (int l = 0; l < 32; ++l) {
      codes[chunk * 64 + l] = static_cast<std::uint8_t>(at(packed, chunk * 32 + l) & 0x0fU);
      codes[chunk * 64 + 32 + l] = static_cast<std::uint8_t>(at(packed, chunk * 32 + l) >> 4);
    }
}

/// Splits 64 bytes that hold 256 codes of 2 bits: each 32 bytes hold 32 codes in bits 0-1, then in
/// bits 2-3, 4-5 and 6-7.
void decode_two_bits(const std::byte* packed, std::uint8_t* codes) {
  for (int i = 0; i < 256; ++i)
    codes[i] =
        static_cast<std::uint8_t>(at(packed, i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2) & 3U);
}

} // namespace

// Layout: d, nibbles. w = d * (q - 8)
void decode_q4_0(const std::byte* block, const decoded_block& out) {
  *out.scales = load_f16(block);
  *out.offsets = -8.0f * *out.scales;
  split_nibbles(block + 2, out.codes);
}

// Layout: d, m, nibbles. w = d * q + m
void decode_q4_1(const std::byte* block, const decoded_block& out) {
  *out.scales = load_f16(block);
  *out.offsets = load_f16(block + 2);
  split_nibbles(block + 4, out.codes);
}

// Layout: d, fifth bits, nibbles. w = d * (q - 16)
void decode_q5_0(const std::byte* block, const decoded_block& out) {
  *out.scales = load_f16(block);
  *out.offsets = -16.0f * *out.scales;
  split_five_bits(block + 2, block + 6, out.codes);
}

// Layout: d, m, fifth bits, nibbles. w = d * q + m
void decode_q5_1(const std::byte* block, const decoded_block& out) {
  *out.scales = load_f16(block);
  *out.offsets = load_f16(block + 2);
  split_five_bits(block + 4, block + 8, out.codes);
}

// Layout: d, int8 values. w = d * q
void decode_q8_0(const std::byte* block, const decoded_block& out) {
  *out.scales = load_f16(block);
  *out.offsets = -128.0f * *out.scales;
  for (int i = 0; i < 32; ++i)
    out.codes[i] = static_cast<std::uint8_t>(at(block, 2 + i) ^ 0x80U);
}

// Layout: 16 bytes of scale | min << 4, 2-bit codes, d, dmin. w = d * scale * q - dmin * min
void decode_q2_k(const std::byte* block, const decoded_block& out) {
  const float d = load_f16(block + 80), dmin = load_f16(block + 82);
  for (int g = 0; g < 16; ++g) {
    out.scales[g] = d * static_cast<float>(at(block, g) & 0x0fU);
    out.offsets[g] = -(dmin * static_cast<float>(at(block, g) >> 4));
  }
  decode_two_bits(block + 16, out.codes);
}

// Layout: third bits, 2-bit codes, 16 scales of 6 bits, d. w = d * (scale - 32) * (q - 4)
void decode_q3_k(const std::byte* block, const decoded_block& out) {
  const std::byte* scales = block + 96;
  const float d = load_f16(block + 108);
  for (int g = 0; g < 16; ++g) {
    const unsigned low = g < 8 ? at(scales, g) & 0x0fU : at(scales, g - 8) >> 4;
    const unsigned high = at(scales, 8 + g % 4) >> (g / 4 * 2) & 3U;
    out.scales[g] = d * static_cast<float>(static_cast<int>(low | high << 4) - 32);
    out.offsets[g] = -4.0f * out.scales[g];
  }
  decode_two_bits(block + 32, out.codes);
  for (int i = 0; i < 256; ++i)
    out.codes[i] |= static_cast<std::uint8_t>((at(block, i % 32) >> (i / 32) & 1U) << 2);
}

// Layout: d, dmin, scales and mins, nibbles. w = d * scale * q - dmin * min
void decode_q4_k(const std::byte* block, const decoded_block& out) {
  decode_six_bit_terms(block, out);
  decode_four_bits(block + 16, out.codes);
}

// Layout: d, dmin, scales and mins, fifth bits, nibbles. w = d * scale * q - dmin * min
void decode_q5_k(const std::byte* block, const decoded_block& out) {
  decode_six_bit_terms(block, out);
  decode_four_bits(block + 48, out.codes);
  for (int i = 0; i < 256; ++i)
    out.codes[i] |= static_cast<std::uint8_t>((at(block, 16 + i % 32) >> (i / 32) & 1U) << 4);
}

// Layout: nibbles, upper 2 bits, 16 int8 scales, d. w = d * scale * (q - 32)
void decode_q6_k(const std::byte* block, const decoded_block& out) {
  const float d = load_f16(block + 208);
  for (int g = 0; g < 16; ++g) {
    const unsigned bits = at(block, 192 + g);
    out.scales[g] = d * static_cast<float>(static_cast<std::int8_t>(bits));
    out.offsets[g] = -32.0f * out.scales[g];
  }
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, quarter = i % 128 / 32, l = i % 32;
    const unsigned low = at(block, half * 64 + quarter % 2 * 32 + l) >> (quarter / 2 * 4) & 0x0fU;
    const unsigned high = at(block, 128 + half * 32 + l) >> (quarter * 2) & 3U;
    out.codes[i] = static_cast<std::uint8_t>(low | high << 4);
  }
}

} // namespace twill::models::gguf
