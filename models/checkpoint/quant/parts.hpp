// parts: finds and checks the tensors in which GPTQ or AWQ stores one matrix: codes, zero points,
// scales and group numbers. The pointers of matrix_parts point into files that the table maps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "models/checkpoint/quant/config.hpp"
#include "models/checkpoint/tensor_table.hpp"

namespace twill::models::quant {

struct matrix_parts {
  std::string stem;      ///< "model.layers.0.mlp.up_proj"
  std::int64_t rows = 0; ///< output features
  std::int64_t cols = 0; ///< input features
  std::int64_t groups = 0;
  const std::byte* codes = nullptr;  // GPTQ (cols / per, rows), AWQ (cols, rows / 8) int32
  const std::byte* zeros = nullptr;  // (groups, rows / per) int32
  const std::byte* scales = nullptr; // (groups, rows) f16 or bf16
  gpu::weight_kind scale_kind = gpu::weight_kind::f16;
  std::vector<std::int32_t> group_of_column; // (cols)
};

/// The names `stem`.qweight, .qzeros, .scales and .g_idx, whether or not these tensors exist.
std::vector<std::string> part_names(const std::string& stem);

/// The matrix's shape, from its .qweight alone; fails with bad_tensor when that cannot be a matrix.
result<matrix_parts> measure(const tensor_table& table, const quant_config& config,
                             const std::string& stem);

/// Finds all parts, and checks that types and shapes fit each other, that group numbers are in
/// range and that scales are finite.
result<matrix_parts> find_parts(const tensor_table& table, const quant_config& config,
                                const std::string& stem);

} // namespace twill::models::quant
