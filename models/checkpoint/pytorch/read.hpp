// read_into: reads a PyTorch .bin file (a zip with a pickle, as torch.save writes it since 1.6)
// into a tensor table.
//
// The pickle is read by an interpreter that supports only tensors (unpickle.hpp), and storages stay
// mapped. These are refused: older files that are not zips, compressed entries, any name or opcode
// that tensors do not need, tensors that exceed their storage, and tensors that are not row-major
// and contiguous.
#pragma once

#include <string>

#include "models/checkpoint/tensor_table.hpp"
#include "models/errc.hpp"

namespace twill::models::pytorch {

/// Adds every tensor of the file to `table`.
result<nothing> read_into(tensor_table& table, const std::string& path);

} // namespace twill::models::pytorch
