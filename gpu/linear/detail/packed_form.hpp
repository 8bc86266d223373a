// packed_form: chooses the packed layout of a matrix, from its source's shape and from which forms
// keep its scales and offsets exactly. Pure functions.
#pragma once

#include <cstdint>

#include "gpu/detail/packed_view.hpp"
#include "gpu/errc.hpp"
#include "gpu/linear/detail/quant_params.hpp"
#include "gpu/linear/packed_matrix.hpp"

namespace twill::gpu::detail {

/// Describes the packed matrix except for the form of its scales and offsets. In the result
/// int16_quant_params says only whether int16 quant params are allowed. The error is bad_source,
/// with a text that begins with `label`, for a source that cannot be packed.
result<packed_view> describe(const weight_source& source, const char* label);

/// Chooses the smallest form that keeps every scale and offset exactly, or int16 quant params where
/// they are allowed and offsets would otherwise be stored as floats. `groups` is the number of
/// groups per row.
void set_form(packed_view& w, const quant_param_facts& facts, std::int64_t groups);

/// Sets the only form of grouped_u4_as_u8: lines of factors and bases after the scales.
void set_lines_form(packed_view& w);

} // namespace twill::gpu::detail
