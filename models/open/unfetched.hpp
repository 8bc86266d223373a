// unfetched: finds pointers of Git LFS among the files of a folder whose absence would go
// unnoticed.
#pragma once

#include <string>

#include "models/errc.hpp"

namespace twill::models {

/// Fails with file_unreadable when one of the folder's optional text files (chat templates, names
/// of special tokens) is a pointer of Git LFS. All other files that are opened tell it themselves.
result<nothing> check_fetched(const std::string& folder);

} // namespace twill::models
