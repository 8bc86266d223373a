// A checkpoint that shows quantised matrices as ordinary ones.
//
// `x.qweight`, `x.qzeros`, `x.scales` and `x.g_idx` appear as one matrix `x.weight`; a bias of
// nothing but zeros beside them (AutoGPTQ writes these) is not shown. All else is as in the table.
#pragma once

#include <memory>
#include <optional>

#include "models/checkpoint/checkpoint.hpp"
#include "models/checkpoint/quant/config.hpp"
#include "models/checkpoint/tensor_table.hpp"

namespace twill::models::quant {

/// The table itself when there is nothing packed. bad_metadata when tensors and configuration
/// contradict each other, bad_tensor when a packed tensor cannot be a matrix.
result<std::shared_ptr<const checkpoint>>
show_as_matrices(std::shared_ptr<const tensor_table> table,
                 const std::optional<quant_config>& config);

} // namespace twill::models::quant
