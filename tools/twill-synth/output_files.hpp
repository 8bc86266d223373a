// output_files: writes files and folders that exist either completely or not at all.
//
// Only one thread at a time may use an object. The files of a folder are kept only if keep() is
// called. Otherwise the destructor removes them, and also the folder if create() made it. Failures
// name the file and the reason that the system gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/twill-synth/names.hpp"

namespace twill::synth {

/// A new file that is written sequentially.
class output_file {
public:
  output_file() = default;
  output_file(output_file&& other) noexcept;
  output_file& operator=(output_file&& other) noexcept;
  ~output_file();

  /// Creates the file. Fails when it exists.
  static result<output_file> create(const std::string& path);
  result<nothing> write(std::span<const std::byte> bytes);
  result<nothing> write(std::string_view text);
  /// Overwrites bytes that have already been written.
  result<nothing> patch(std::int64_t offset, std::string_view bytes);
  std::int64_t position() const { return position_; }
  result<nothing> close();

private:
  failure failed(const char* what) const;

  std::string path_;
  int descriptor_ = -1;
  std::int64_t position_ = 0;
};

class output_folder {
public:
  output_folder() = default;
  output_folder(output_folder&& other) noexcept;
  output_folder& operator=(output_folder&&) = delete;
  ~output_folder();

  /// Creates the folder. A folder that exists must be empty.
  static result<output_folder> create(const std::string& path);
  /// Opens the existing folder in which the single new file `file` will be created.
  static result<output_folder> around(const std::string& file);
  /// Creates a file in this folder. The file is removed again unless keep() is called.
  result<output_file> add(const std::string& name);
  result<nothing> add_whole(const std::string& name, std::string_view bytes);
  /// How many bytes this user can still write to the folder's file system.
  std::int64_t free_bytes() const;
  void keep() { kept_ = true; }

private:
  std::string path_;
  std::vector<std::string> files_;
  bool made_ = false;
  bool kept_ = false;
};

} // namespace twill::synth
