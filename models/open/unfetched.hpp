// unfetched: finds Git LFS pointers in place of a folder's optional files. Such files would
// otherwise be ignored without a message.
#pragma once

#include <string>

#include "models/errc.hpp"

namespace twill::models {

/// Fails with file_unreadable if one of the folder's optional text files (chat templates, names of
/// special tokens) is a Git LFS pointer. For all other files, opening the file reports the pointer.
result<nothing> check_fetched(const std::string& folder);

} // namespace twill::models
