// show_as_matrices: wraps a table of tensors in a checkpoint that presents GPTQ and AWQ matrices as
// ordinary matrices.
//
// `x.qweight`, `x.qzeros`, `x.scales` and `x.g_idx` appear as one matrix `x.weight`. A bias beside
// them that is all zeros, as AutoGPTQ writes it, is not shown. Other tensors are those of the
// table.
#pragma once

#include <memory>
#include <optional>

#include "models/checkpoint/checkpoint.hpp"
#include "models/checkpoint/quant/config.hpp"
#include "models/checkpoint/tensor_table.hpp"

namespace twill::models::quant {

/// Returns a checkpoint that shows the quantised matrices of `table` as ordinary ones, or `table`
/// itself when no matrix is quantised. Fails with bad_metadata when tensors and configuration
/// contradict each other, and with bad_tensor when a packed tensor cannot be a matrix.
result<std::shared_ptr<const checkpoint>>
show_as_matrices(std::shared_ptr<const tensor_table> table,
                 const std::optional<quant_config>& config);

} // namespace twill::models::quant
