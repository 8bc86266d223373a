// read_into: checks a safetensors file's header and adds its tensors to a table without copying.
//
// Fails with bad_format when the header exceeds the file or the format's size limit, is not JSON,
// or has tensors whose bytes differ from shape times element size or that do not cover the data
// section exactly (the format allows neither gaps nor overlaps). Memory while reading is a small
// multiple of the header. Format: https://github.com/huggingface/safetensors#format
#pragma once

#include <string>

#include "models/checkpoint/tensor_table.hpp"
#include "models/errc.hpp"

namespace twill::models::safetensors {

/// Adds every tensor of the file to `table`.
result<nothing> read_into(tensor_table& table, const std::string& path);

} // namespace twill::models::safetensors
