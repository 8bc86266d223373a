// isa: the instruction-set levels that the host micro-kernels are written for.
//
// Each level includes the ones before it. Pure functions, which any thread may call.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace twill::gpu::host {

enum class isa : std::uint8_t {
  plain,       ///< C++ only, any processor
  avx2,        ///< AVX2, FMA, F16C
  avx512,      ///< AVX-512 F, BW, VL, DQ
  avx512_vnni, ///< plus VNNI: four int8 products per lane and instruction
  avx512_bf16, ///< plus BF16 dot products
};

const char* name_of(isa level);

/// The level of that name; nothing for an unknown one.
std::optional<isa> parse_isa(std::string_view name);

/// The widest level that this processor (and its operating system) runs.
isa widest_isa();

} // namespace twill::gpu::host
