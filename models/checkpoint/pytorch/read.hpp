// Reads PyTorch's .bin files (torch.save since 1.6: a zip with a pickle) into a tensor table.
//
// The pickle is read by a machine that knows tensors alone; storages stay mapped. Refused: older
// files that are no zip, compressed entries, any name or opcode that tensors do not need, tensors
// that pass their storage, and such as are not row-major and contiguous.
#pragma once

#include <string>

#include "models/checkpoint/tensor_table.hpp"
#include "models/errc.hpp"

namespace twill::models::pytorch {

/// Adds every tensor of the file to `table`.
result<nothing> read_into(tensor_table& table, const std::string& path);

} // namespace twill::models::pytorch
