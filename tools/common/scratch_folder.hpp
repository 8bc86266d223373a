// scratch_folder: a hidden temporary folder in which a file can be written completely before a
// rename puts it in place. The destructor removes the folder and everything in it. If the process
// was killed first, a later scratch_folder with the same parent removes it.
#pragma once

#include <filesystem>

namespace twill::tools {

class scratch_folder {
public:
  /// Makes the folder in `parent`, which must exist. Also removes scratch folders in `parent` that
  /// ended processes left behind, if those folders were last modified at least a minute ago.
  explicit scratch_folder(const std::filesystem::path& parent);
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder();

  bool exists() const { return !path_.empty(); } ///< false when `parent` is not writable
  const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
  int lock_ = -1; ///< descriptor of the folder, locked until the destructor runs
};

} // namespace twill::tools
