// folder_text: the tokenizer of a folder alone, for programs that need no weights.
//
// Any thread. Fails as make_folder_tokenizer() does, and when a JSON file cannot be read.
#pragma once

#include <memory>
#include <string>

#include "models/text/tokenizer.hpp"

namespace twill::models {

/// The tokenizer of the folder at `path`. A folder of no known family gets the default hints.
result<std::shared_ptr<const tokenizer>> open_folder_tokenizer(const std::string& path);

} // namespace twill::models
