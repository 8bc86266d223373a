// source: presents a GPTQ or AWQ matrix as a gpu::weight_source, which has codes and, for each
// group of columns, a scale and an offset. The values are exact: value = scale * (code - zero).
//
// A scale has at most 11 significant bits (f16) and a code or zero point has 8, so their product
// has at most 19. The scale, the offset -zero * scale and every value are therefore exact in f32. A
// source reads the mapped memory to which matrix_parts points. GPTQ: Frantar et al. 2022,
// https://arxiv.org/abs/2210.17323 (layout: AutoGPTQ); AWQ: Lin et al. 2023,
// https://arxiv.org/abs/2306.00978 (layout: AutoAWQ's GEMM).
#pragma once

#include "gpu/linear/packed_matrix.hpp"
#include "models/checkpoint/quant/parts.hpp"

namespace twill::models::quant {

/// If columns are not in the order of their groups (GPTQ's act-order), the result packs them sorted
/// by group, and its column_order has their original places. Fails with `unsupported` when groups
/// are not multiples of 8 columns.
result<gpu::weight_source> make_source(matrix_parts parts, const quant_config& config);

} // namespace twill::models::quant
