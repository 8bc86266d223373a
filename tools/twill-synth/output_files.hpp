// output_files: files and folders that exist whole or not at all.
//
// One thread. A folder's files stay only after keep(); until then the destructor removes what was
// made, and the folder too if create() made it. Failures name the file and the system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/twill-synth/names.hpp"

namespace twill::synth {

/// A new file, which is written from front to back.
class output_file {
public:
  output_file() = default;
  output_file(output_file&& other) noexcept;
  output_file& operator=(output_file&& other) noexcept;
  ~output_file();

  /// Refuses a file that exists.
  static result<output_file> create(const std::string& path);
  result<nothing> write(std::span<const std::byte> bytes);
  result<nothing> write(std::string_view text);
  /// Overwrites bytes that were written before.
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

  /// Makes the folder; one that exists must be empty.
  static result<output_folder> create(const std::string& path);
  /// The folder of a single new file, which must exist.
  static result<output_folder> around(const std::string& file);
  /// Adds a file to this folder, which is removed again unless keep() is called.
  result<output_file> add(const std::string& name);
  result<nothing> add_whole(const std::string& name, std::string_view bytes);
  /// Bytes that its file system has left for this user.
  std::int64_t free_bytes() const;
  void keep() { kept_ = true; }

private:
  std::string path_;
  std::vector<std::string> files_;
  bool made_ = false;
  bool kept_ = false;
};

} // namespace twill::synth
