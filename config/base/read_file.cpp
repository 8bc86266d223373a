#include "config/base/read_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace twill {

result<std::string, file_errc> read_file(const std::string& path, std::int64_t max_bytes) {
  const auto refuse = [&](const std::string& why) {
    return failure{file_errc::unreadable, path + ": " + why};
  };
  // With O_NONBLOCK, opening a pipe does not wait for a writer.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return refuse(std::strerror(errno));
  struct closer {
    int descriptor;
    ~closer() { ::close(descriptor); }
  } const at_end{file};
  struct stat about {};
  if (::fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) return refuse("is not a regular file");
  std::string text;
  char piece[16 * 1024];
  for (;;) {
    const auto n = ::read(file, piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return refuse(std::strerror(errno));
    if (n == 0) return text;
    text.append(piece, static_cast<std::size_t>(n));
    if (static_cast<std::int64_t>(text.size()) > max_bytes)
      return refuse("must be at most " + std::to_string(max_bytes) + " bytes long");
  }
}

} // namespace twill
