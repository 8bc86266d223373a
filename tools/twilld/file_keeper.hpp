// file_keeper: a small child process that keeps root's rights in order to read a few files, named
// at its start, for a daemon that gave up its own rights. The daemon can therefore reload a key
// that only root may read, also after another file of the same name has replaced it.
//
// Create the object before any other thread exists, because its constructor forks. The child
// process ends with the daemon. Only one thread at a time may call read().
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

#include "config/base/read_file.hpp"

namespace twill::tools {

/// The size limit for a configuration file or a certificate.
inline constexpr std::int64_t max_file_bytes = 4 << 20;

class file_keeper {
public:
  /// Throws std::runtime_error when the process cannot be started.
  explicit file_keeper(std::vector<std::string> paths);
  ~file_keeper();
  file_keeper(const file_keeper&) = delete;
  file_keeper& operator=(const file_keeper&) = delete;

  /// Reads one of the files; any other path is read with the daemon's own rights.
  result<std::string, file_errc> read(const std::string& path);

private:
  std::vector<std::string> paths_;
  int line_ = -1; ///< socket connected to the child process
  pid_t process_ = -1;
};

} // namespace twill::tools
