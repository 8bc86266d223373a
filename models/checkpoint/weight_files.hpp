// weight_files: which files of a model folder hold its weights, and reading them into one table.
#pragma once

#include <memory>
#include <string>

#include "models/checkpoint/tensor_table.hpp"
#include "models/errc.hpp"

namespace twill::models {

/// Reads the weights of `folder`. `file`: the name of one file in it that the caller asked for;
/// empty, or a file that an index lists: what the folder as a whole holds.
result<std::shared_ptr<const tensor_table>> read_weights(const std::string& folder,
                                                         const std::string& file);

} // namespace twill::models
