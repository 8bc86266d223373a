// lfs_pointer: the short text that Git LFS leaves in the place of a large file that it has not
// fetched (https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md). The functions are pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace twill::models {

inline constexpr std::size_t longest_lfs_pointer = 1023; ///< bytes

/// Whether a file of these bytes is such a text.
inline bool is_lfs_pointer(std::string_view bytes) {
  return bytes.size() <= longest_lfs_pointer &&
         bytes.starts_with("version https://git-lfs.github.com/spec/");
}

/// The message about a file that is such a pointer; it follows the file's path.
inline constexpr const char* lfs_pointer_words = ": Git LFS has not fetched this file yet and left "
                                                 "a pointer in its place; run `git lfs pull` in "
                                                 "its repository";

} // namespace twill::models
