// source: quantised matrices as grouped weight sources, exactly: value = scale * (code - zero).
//
// A scale of 11 bits times a code or zero of 8 has at most 19 bits, so scale, offset = -zero *
// scale and every value are exact in f32. Sources refer to the parts' memory.
// GPTQ: Frantar et al. 2022, https://arxiv.org/abs/2210.17323 (layout: AutoGPTQ); AWQ: Lin et al.
// 2023, https://arxiv.org/abs/2306.00978 (layout: AutoAWQ's GEMM).
#pragma once

#include "gpu/linear/packed_matrix.hpp"
#include "models/checkpoint/quant/parts.hpp"

namespace twill::models::quant {

/// Columns that are not in the order of their groups (act-order) set the source's column_order.
/// Fails with `unsupported` when groups are not multiples of 8 columns.
result<gpu::weight_source> make_source(matrix_parts parts, const quant_config& config);

} // namespace twill::models::quant
