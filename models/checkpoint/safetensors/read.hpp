// Reads safetensors files: header checked whole, tensors added to a table without copying.
//
// Refused with bad_format: a header that passes the file's end or the format's size limit, is no
// JSON, or whose tensors do not cover the data section exactly (gaps and overlaps are against the
// format), or whose bytes differ from shape times element size. Memory while reading is a small
// multiple of the header. Format: https://github.com/huggingface/safetensors#format
#pragma once

#include <string>

#include "models/checkpoint/tensor_table.hpp"
#include "models/errc.hpp"

namespace twill::models::safetensors {

/// Adds every tensor of the file to `table`.
result<nothing> read_into(tensor_table& table, const std::string& path);

} // namespace twill::models::safetensors
