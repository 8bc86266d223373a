// folder_text: opens only the tokenizer of a folder, for programs that need no weights.
//
// Any thread may call. Fails as make_folder_tokenizer() does, and if a JSON file cannot be read.
#pragma once

#include <memory>
#include <string>

#include "models/text/tokenizer.hpp"

namespace twill::models {

/// Opens the tokenizer of the folder at `path`. If the model family is unknown, default
/// tokenizer_hints are used.
result<std::shared_ptr<const tokenizer>> open_folder_tokenizer(const std::string& path);

} // namespace twill::models
