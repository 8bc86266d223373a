#include "models/checkpoint/gguf/kinds.hpp"

#include <array>

namespace twill::models::gguf {
namespace {

using gpu::weight_kind;

constexpr kind_info unread(std::uint32_t id, const char* name) {
  return {id, name, 1, 0, weight_kind::f32, 0, nullptr};
}

constexpr std::array kinds = {
    kind_info{0, "F32", 1, 4, weight_kind::f32, 0, nullptr},
    kind_info{1, "F16", 1, 2, weight_kind::f16, 0, nullptr},
    kind_info{2, "Q4_0", 32, 18, weight_kind::grouped_u4, 32, decode_q4_0},
    kind_info{3, "Q4_1", 32, 20, weight_kind::grouped_u4, 32, decode_q4_1},
    kind_info{6, "Q5_0", 32, 22, weight_kind::grouped_u8, 32, decode_q5_0},
    kind_info{7, "Q5_1", 32, 24, weight_kind::grouped_u8, 32, decode_q5_1},
    kind_info{8, "Q8_0", 32, 34, weight_kind::grouped_u8, 32, decode_q8_0},
    kind_info{10, "Q2_K", 256, 84, weight_kind::grouped_u4, 16, decode_q2_k},
    kind_info{11, "Q3_K", 256, 110, weight_kind::grouped_u4, 16, decode_q3_k},
    kind_info{12, "Q4_K", 256, 144, weight_kind::grouped_u4, 32, decode_q4_k},
    kind_info{13, "Q5_K", 256, 176, weight_kind::grouped_u8, 32, decode_q5_k},
    kind_info{14, "Q6_K", 256, 210, weight_kind::grouped_u8, 16, decode_q6_k},
    kind_info{30, "BF16", 1, 2, weight_kind::bf16, 0, nullptr},
    unread(9, "Q8_1"),
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

} // namespace

const kind_info* find_kind(std::uint32_t id) {
  for (const kind_info& kind : kinds)
    if (kind.id == id) return &kind;
  return nullptr;
}

std::string readable_kinds(bool dense_only) {
  std::string names;
  for (const kind_info& kind : kinds)
    if (kind.block_bytes > 0 && (kind.block_values == 1 || !dense_only))
      names += (names.empty() ? "" : ", ") + std::string(kind.name);
  return names;
}

void decode_row(const kind_info& kind, const std::byte* row, std::int64_t cols,
                const gpu::grouped_row& out) {
  const std::int64_t groups = kind.block_values / kind.group;
  for (std::int64_t b = 0; b < cols / kind.block_values; ++b)
    kind.decode(row + b * kind.block_bytes, {out.codes + b * kind.block_values,
                                             out.scales + b * groups, out.offsets + b * groups});
}

} // namespace twill::models::gguf
