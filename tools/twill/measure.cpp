#include "tools/twill/measure.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "config/base/least_seconds.hpp"
#include "config/base/units.hpp"
#include "gpu/machine.hpp"

namespace twill::tools {
namespace {

std::int64_t test_bytes() {
  return std::clamp(gpu::machine::available_bytes() / 4, 16 * mib, 256 * mib);
}

class open_file {
public:
  explicit open_file(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;
  ~open_file() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }

private:
  int fd_;
};

/// Bytes per second of one pass over the file's beginning; 0 when it cannot be read.
double read_rate(int fd, std::vector<char>& chunk) {
  std::int64_t done = 0;
  const double seconds = seconds_of([&] {
    while (done < 512 * mib) {
      const auto n_read = ::pread(fd, chunk.data(), chunk.size(), done);
      if (n_read <= 0) break;
      done += n_read;
    }
  });
  return static_cast<double>(done) / seconds;
}

} // namespace

std::optional<link_bandwidth> measure_link(gpu::device& dev) {
  const std::int64_t bytes = test_bytes();
  auto device_memory = dev.allocate(static_cast<std::size_t>(bytes), "bandwidth test");
  if (!device_memory.ok()) return std::nullopt;
  std::vector<char> host_memory(static_cast<std::size_t>(bytes), 1);
  link_bandwidth speeds;
  speeds.upload =
      static_cast<double>(bytes) / least_seconds(8, [&] {
        dev.upload(device_memory.value().data(), host_memory.data(), host_memory.size());
        dev.fence();
      });
  speeds.download =
      static_cast<double>(bytes) / least_seconds(8, [&] {
        dev.download(host_memory.data(), device_memory.value().data(), host_memory.size());
        dev.fence();
      });
  return speeds;
}

std::optional<disk_bandwidth> measure_disk(const std::string& path) {
  const open_file file(path);
  if (file.fd() < 0) return std::nullopt;
  std::vector<char> chunk(static_cast<std::size_t>(4 * mib));
  posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED);
  disk_bandwidth speeds;
  speeds.cold = read_rate(file.fd(), chunk);
  speeds.cached = read_rate(file.fd(), chunk);
  return speeds;
}

} // namespace twill::tools
