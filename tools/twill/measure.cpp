#include "tools/twill/measure.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <vector>

#include "config/base/least_seconds.hpp"
#include "config/base/units.hpp"
#include "gpu/machine.hpp"

namespace twill::tools {
namespace {

/// The size of the test buffers: a quarter of what is free on both the host and the device, between
/// 1 and 256 MiB.
std::int64_t test_bytes(const gpu::device& dev) {
  const std::int64_t room =
      std::min(gpu::machine::available_bytes(), dev.info().memory_bytes - dev.memory_used());
  return std::clamp(room / 4, 1 * mib, 256 * mib);
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

/// Reads up to `most_bytes` from the file's beginning and returns the bytes per second; 0 when it
/// cannot be read.
double read_rate(int fd, std::vector<char>& chunk, std::int64_t most_bytes) {
  std::int64_t done = 0;
  const double seconds = seconds_of([&] {
    while (done < most_bytes) {
      const auto n_read = ::pread(fd, chunk.data(), chunk.size(), done);
      if (n_read <= 0) break;
      done += n_read;
    }
  });
  return static_cast<double>(done) / seconds;
}

/// Whether a file consists mostly of holes, which are not read from the disk. That is so for a
/// model of Hugging Face's hub of which only headers were fetched.
bool is_mostly_holes(int fd) {
  struct stat about {};
  constexpr std::int64_t block_bytes = 512; // unit of st_blocks
  return ::fstat(fd, &about) == 0 && about.st_blocks * block_bytes < about.st_size / 2;
}

} // namespace

std::optional<link_bandwidth> measure_link(gpu::device& dev) {
  const std::int64_t bytes = test_bytes(dev);
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

std::optional<disk_bandwidth> measure_disk(const std::string& path, std::int64_t most_bytes) {
  const open_file file(path);
  if (file.fd() < 0 || is_mostly_holes(file.fd())) return std::nullopt;
  std::vector<char> chunk(static_cast<std::size_t>(4 * mib));
  posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED);
  disk_bandwidth speeds;
  speeds.cold = read_rate(file.fd(), chunk, most_bytes);
  speeds.cached = read_rate(file.fd(), chunk, most_bytes);
  if (!(speeds.cold > 0 && speeds.cached > 0)) return std::nullopt; // a folder or an empty file
  return speeds;
}

std::string weights_file(const std::string& model_path) {
  namespace fs = std::filesystem;
  std::error_code failed;
  if (fs::is_regular_file(model_path, failed)) return model_path;
  std::string largest;
  std::uintmax_t most = 0;
  for (fs::directory_iterator at(model_path, failed), end; !failed && at != end;
       at.increment(failed)) {
    std::error_code unknown;
    const auto bytes = at->is_regular_file(unknown) ? at->file_size(unknown) : 0;
    if (unknown || bytes <= most) continue;
    most = bytes;
    largest = at->path().string();
  }
  return largest;
}

} // namespace twill::tools
