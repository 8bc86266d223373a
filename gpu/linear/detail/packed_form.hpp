// packed_form: chooses the packed layout of a matrix. The choice depends on the source's shape and
// on which formats can hold its scales and offsets exactly. The functions are pure.
#pragma once

#include <cstdint>

#include "gpu/detail/packed_view.hpp"
#include "gpu/errc.hpp"
#include "gpu/linear/detail/quant_params.hpp"
#include "gpu/linear/packed_matrix.hpp"

namespace twill::gpu::detail {

/// Describes the packed matrix except for the way in which its scales and offsets are stored. In
/// the result int16_quant_params says only whether they may be stored as 16-bit integers
/// (packed_view.hpp). The error is bad_source, with a text that begins with `label`, for a source
/// that cannot be packed.
result<packed_view> describe(const weight_source& source, const char* label);

/// Chooses how scales and offsets are stored: in the least memory that keeps each of them exactly,
/// or as 16-bit integers (int16 quant params, packed_view.hpp) where these are allowed and offsets
/// would otherwise be stored as floats. `groups` is the number of groups per row.
void set_form(packed_view& w, const quant_param_facts& facts, std::int64_t groups);

/// Sets the only form of grouped_u4_as_u8: lines of factors and bases after the scales.
void set_lines_form(packed_view& w);

} // namespace twill::gpu::detail
