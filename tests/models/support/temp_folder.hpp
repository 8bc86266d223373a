// A folder of files with given bytes, removed with all it holds at the end of its scope.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include <unistd.h>

namespace twill::test {

class temp_folder {
public:
  temp_folder() {
    const char* parent = std::getenv("TMPDIR");
    path_ = std::string(parent != nullptr ? parent : "/tmp") + "/twill-test-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp failed: " + path_);
  }
  /// Makes a folder with copies of the files of the folder `from`.
  explicit temp_folder(const std::string& from) : temp_folder() {
    for (const auto& entry : std::filesystem::directory_iterator(from))
      if (entry.is_regular_file())
        std::filesystem::copy_file(entry.path(), file(entry.path().filename().string()));
  }
  temp_folder(const temp_folder&) = delete;
  temp_folder& operator=(const temp_folder&) = delete;
  ~temp_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  /// Must not be called while the file is mapped.
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream out(file(name), std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    if (!out) throw std::runtime_error("cannot write " + file(name));
  }
  void remove(const std::string& name) const { std::filesystem::remove(file(name)); }
  void rename(const std::string& from, const std::string& to) const {
    std::filesystem::rename(file(from), file(to));
  }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

private:
  std::string path_;
};

} // namespace twill::test
