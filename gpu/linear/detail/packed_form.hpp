// packed_form: how a matrix will lie once it is packed, from its source's shape and the facts of
// its scales and offsets. Pure.
#pragma once

#include <cstdint>

#include "gpu/detail/packed_view.hpp"
#include "gpu/errc.hpp"
#include "gpu/linear/detail/quant_params.hpp"
#include "gpu/linear/packed_matrix.hpp"

namespace twill::gpu::detail {

/// All but the form of the terms (integer_terms: whether they may be); bad_source for what cannot
/// be packed, in words that begin with `label`.
result<packed_view> describe(const weight_source& source, const char* label);

/// The smallest form that keeps every scale and offset exactly, where these facts hold for all of
/// them, or integer terms where they may be; `groups` of a row.
void set_form(packed_view& w, const terms_facts& facts, std::int64_t groups);

/// grouped_u4_as_u8 has one form.
void set_lines_form(packed_view& w);

} // namespace twill::gpu::detail
