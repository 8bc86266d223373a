// blocks: exact decoding of ggml's quantised blocks into codes, scales and offsets.
//
// value = scale * code + offset. In the kinds Q2_K to Q6_K, a scale is the product of an f16 and a
// small integer; f32 holds this product exactly. The layouts are those of ggml's block_q*
// structures. The functions are pure.
#pragma once

#include <cstddef>
#include <cstdint>

namespace twill::models::gguf {

/// The arrays to which one quantised block is decoded: the codes of its values, and the scales and
/// offsets of its groups (values that share a scale and an offset).
struct decoded_block {
  std::uint8_t* codes;
  float* scales;
  float* offsets;
};

using block_decoder = void (*)(const std::byte* block, const decoded_block& out);

void decode_q4_0(const std::byte* block, const decoded_block& out);
void decode_q4_1(const std::byte* block, const decoded_block& out);
void decode_q5_0(const std::byte* block, const decoded_block& out);
void decode_q5_1(const std::byte* block, const decoded_block& out);
void decode_q8_0(const std::byte* block, const decoded_block& out);
void decode_q2_k(const std::byte* block, const decoded_block& out);
void decode_q3_k(const std::byte* block, const decoded_block& out);
void decode_q4_k(const std::byte* block, const decoded_block& out);
void decode_q5_k(const std::byte* block, const decoded_block& out);
void decode_q6_k(const std::byte* block, const decoded_block& out);

} // namespace twill::models::gguf
