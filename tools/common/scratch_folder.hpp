// scratch_folder: a hidden folder beside a file that is being made, so that a rename puts the whole
// file in place. It goes away with everything in it, also when the process ended before it could.
#pragma once

#include <filesystem>

namespace twill::tools {

class scratch_folder {
public:
  /// Makes the folder in `parent`, which must exist, and removes scratch folders there whose
  /// processes have ended.
  explicit scratch_folder(const std::filesystem::path& parent);
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder();

  bool exists() const { return !path_.empty(); } ///< false: `parent` cannot be written
  const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
  int lock_ = -1; ///< held while the maker lives
};

} // namespace twill::tools
