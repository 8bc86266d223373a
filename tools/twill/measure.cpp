#include "tools/twill/measure.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "config/base/units.hpp"

namespace twill::tools {
namespace {

/// Best of several runs, the least disturbed one, after a first that touches every page.
double best_rate(std::int64_t bytes, const std::function<void()>& run) {
  using clock = std::chrono::steady_clock;
  run();
  const auto end = clock::now() + std::chrono::milliseconds(600);
  double best = 0;
  do {
    const auto begin = clock::now();
    run();
    const double seconds = std::chrono::duration<double>(clock::now() - begin).count();
    best = std::max(best, static_cast<double>(bytes) / std::max(seconds, 1e-9));
  } while (clock::now() < end);
  return best;
}

/// Sums 8 independent lanes, so that loads, not additions, set the pace.
std::uint64_t sum_of(const std::uint64_t* data, std::size_t words) {
  std::uint64_t lanes[8] = {};
  for (std::size_t i = 0; i + 8 <= words; i += 8)
    for (std::size_t lane = 0; lane < 8; ++lane)
      lanes[lane] += data[i + lane];
  std::uint64_t sum = 0;
  for (const auto lane : lanes)
    sum += lane;
  return sum;
}

std::int64_t test_bytes() {
  return std::clamp(available_memory() / 4, 16 * mib, 512 * mib);
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
  const auto begin = std::chrono::steady_clock::now();
  std::int64_t done = 0;
  while (done < 512 * mib) {
    const auto got = ::pread(fd, chunk.data(), chunk.size(), done);
    if (got <= 0) break;
    done += got;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return static_cast<double>(done) / std::max(took.count(), 1e-9);
}

} // namespace

double memory_read_bandwidth(int threads) {
  const auto words = static_cast<std::size_t>(test_bytes()) / sizeof(std::uint64_t);
  const std::vector<std::uint64_t> data(words, 1);
  const std::size_t part = words / static_cast<std::size_t>(threads);
  std::atomic<std::uint64_t> sink{0};
  return best_rate(static_cast<std::int64_t>(words * sizeof(std::uint64_t)), [&] {
    std::vector<std::thread> helpers;
    for (int t = 1; t < threads; ++t)
      helpers.emplace_back(
          [&, t] { sink += sum_of(data.data() + static_cast<std::size_t>(t) * part, part); });
    sink += sum_of(data.data(), part);
    for (auto& helper : helpers)
      helper.join();
  });
}

std::optional<link_bandwidth> measure_link(gpu::device& dev) {
  const std::int64_t bytes = std::min(test_bytes(), 256 * mib);
  auto there = dev.allocate(static_cast<std::size_t>(bytes), "bandwidth test");
  if (!there.ok()) return std::nullopt;
  std::vector<char> here(static_cast<std::size_t>(bytes), 1);
  link_bandwidth speeds;
  speeds.upload = best_rate(bytes, [&] {
    dev.upload(there.value().data(), here.data(), here.size());
    dev.fence();
  });
  speeds.download = best_rate(bytes, [&] {
    dev.download(here.data(), there.value().data(), here.size());
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

std::int64_t available_memory() {
  std::ifstream meminfo("/proc/meminfo");
  std::string name, unit;
  std::int64_t kilobytes = 0;
  while (meminfo >> name >> kilobytes) {
    if (name == "MemAvailable:") return kilobytes * kib;
    std::getline(meminfo, unit);
  }
  return 256 * mib; // no such file: a modest guess that keeps the tests small
}

} // namespace twill::tools
