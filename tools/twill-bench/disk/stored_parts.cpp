#include "tools/twill-bench/disk/stored_parts.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "models/offload/streams/disk_store.hpp"
#include "models/offload/streams/io_pool.hpp"

namespace twill::bench {
namespace {

using models::offload::store_alignment;
using models::offload::transfer_bytes;

void cut(std::int64_t begin, std::int64_t end, std::vector<stored_part>& parts) {
  begin = models::offload::store_aligned(begin);
  end = end / store_alignment * store_alignment;
  for (; begin < end; begin += transfer_bytes)
    parts.push_back({begin, std::min(transfer_bytes, end - begin)});
}

} // namespace

std::vector<stored_part> stored_parts(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (fd < 0 || ::fstat(fd, &status) != 0)
    throw std::runtime_error("opening " + path + ": " + std::strerror(errno));
  std::vector<stored_part> parts;
  if (!S_ISREG(status.st_mode)) status.st_size = 0; // on a device file, seeks have another meaning
#ifdef SEEK_DATA
  for (off_t at = 0; at < status.st_size && (at = ::lseek(fd, at, SEEK_DATA)) >= 0;) {
    const off_t hole = ::lseek(fd, at, SEEK_HOLE); // the end of the file counts as a hole
    if (hole < 0) break;
    cut(at, hole, parts);
    at = hole;
  }
#else
  cut(0, status.st_size, parts);
#endif
  ::close(fd);
  if (parts.empty())
    throw std::runtime_error("`--file` must be a file that holds " +
                             std::to_string(store_alignment) + " bytes or more, got " + path);
  return parts;
}

} // namespace twill::bench
