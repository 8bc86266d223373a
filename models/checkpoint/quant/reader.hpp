// reader: reads stored codes in the forms that packing asks for. Immutable; any thread may call.
#pragma once

#include <cstdint>
#include <memory>

#include "gpu/linear/packed_matrix.hpp"
#include "models/checkpoint/quant/layout.hpp"
#include "models/checkpoint/quant/parts.hpp"

namespace twill::models::quant {

struct stored_codes {
  matrix_parts parts;
  column_layout layout;
  std::int32_t bits = 4;
  std::int32_t zero_added = 0;   ///< GPTQ v1 stores zero points minus one, modulo 2^bits
  bool rows_interleaved = false; ///< AWQ's words run along rows, in the order 0 2 4 6 1 3 5 7
};

/// Reads scales and offsets of rows [first, first + n). // (n, packed groups) each
void read_terms(const stored_codes& from, std::int64_t first, std::int64_t n, float* scales,
                float* offsets);

/// Reads one row, code by code; this defines the format.
void read_row(const stored_codes& from, std::int64_t row, const gpu::grouped_row& out);

/// Reads whole panels of rows, word by word; only scales and offsets when `out.words` is null.
void read_gptq_rows(const stored_codes& from, const gpu::grouped_rows& out);
void read_awq_rows(const stored_codes& from, const gpu::grouped_rows& out);

} // namespace twill::models::quant
