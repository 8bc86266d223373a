// packed_form: how a matrix will lie once it is packed, judged from its source's shape and from
// which forms keep its scales and offsets exactly. Pure functions.
#pragma once

#include <cstdint>

#include "gpu/detail/packed_view.hpp"
#include "gpu/errc.hpp"
#include "gpu/linear/detail/quant_params.hpp"
#include "gpu/linear/packed_matrix.hpp"

namespace twill::gpu::detail {

/// Everything but the form of scales and offsets; int16_quant_params says whether that form is
/// allowed. A source that cannot be packed is bad_source, in words that begin with `label`.
result<packed_view> describe(const weight_source& source, const char* label);

/// Chooses the smallest form that keeps every scale and offset exactly, or int16 quant params where
/// they are allowed and offsets would be floats. `groups` is the number of groups of a row.
void set_form(packed_view& w, const quant_param_facts& facts, std::int64_t groups);

/// Sets the one form of grouped_u4_as_u8: lines of factors and bases behind the scales.
void set_lines_form(packed_view& w);

} // namespace twill::gpu::detail
