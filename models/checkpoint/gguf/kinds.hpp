// kinds: the element kinds of GGUF tensors, and how their blocks are decoded.
//
// Every known kind has a name for messages; twill reads those whose block_bytes are above 0. The
// layouts are those of ggml's quantised types. Pure data and functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "gpu/linear/packed_matrix.hpp"
#include "models/checkpoint/gguf/blocks.hpp"

namespace twill::models::gguf {

struct kind_info {
  std::uint32_t id;          ///< as in the file
  const char* name;          ///< "Q4_1"
  std::int32_t block_values; ///< values per block; 1 for dense kinds
  std::int32_t block_bytes;  ///< 0: a kind that twill does not read
  gpu::weight_kind packed;   ///< how a matrix of it is handed out; unused when not read
  std::int32_t group;        ///< values per scale; 0 for dense kinds
  block_decoder decode;      ///< nullptr for dense kinds
};

/// The kind of that id; nullptr when there is none.
const kind_info* find_kind(std::uint32_t id);

/// The names of the kinds that twill reads, for messages: "F32, F16, Q4_0, ...". With `dense_only`
/// it lists only F32, F16 and BF16, the kinds in which vectors (norm weights and biases) may be
/// stored.
std::string readable_kinds(bool dense_only = false);

/// Decodes one row of a grouped kind into codes, scales and offsets: value = scale * code + offset.
void decode_row(const kind_info& kind, const std::byte* row, std::int64_t cols,
                const gpu::grouped_row& out);

} // namespace twill::models::gguf
