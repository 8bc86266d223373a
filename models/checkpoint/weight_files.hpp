// weight_files: finds the files of a model folder that hold its weights, and reads them into one
// table.
#pragma once

#include <memory>
#include <string>

#include "models/checkpoint/tensor_table.hpp"
#include "models/errc.hpp"

namespace twill::models {

/// Reads the weights of `folder`. `file` is the name of a single file in it to be read alone. When
/// it is empty, or an index lists it, all of the folder's weights are read.
result<std::shared_ptr<const tensor_table>> read_weights(const std::string& folder,
                                                         const std::string& file);

} // namespace twill::models
