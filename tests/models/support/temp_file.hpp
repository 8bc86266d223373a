// A file with given bytes, removed at the end of its scope.
#pragma once

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

#include <unistd.h>

namespace twill::test {

class temp_file {
public:
  explicit temp_file(const std::string& bytes) {
    const char* folder = std::getenv("TMPDIR");
    path_ = std::string(folder != nullptr ? folder : "/tmp") + "/twill-test-XXXXXX";
    const int fd = ::mkstemp(path_.data());
    if (fd < 0) throw std::runtime_error("mkstemp failed: " + path_);
    ::close(fd);
    rewrite(bytes);
  }
  temp_file(const temp_file&) = delete;
  temp_file& operator=(const temp_file&) = delete;
  ~temp_file() { ::unlink(path_.c_str()); }

  /// Must not be called while the file is mapped.
  void rewrite(const std::string& bytes) {
    std::ofstream out(path_, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    if (!out) throw std::runtime_error("cannot write " + path_);
  }
  const std::string& path() const { return path_; }

private:
  std::string path_;
};

} // namespace twill::test
