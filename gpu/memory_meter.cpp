#include "gpu/memory_meter.hpp"

#include <algorithm>
#include <array>

#include <sys/mman.h>
#include <unistd.h>

#include "gpu/detail/space.hpp"
#include "gpu/device.hpp"

namespace twill::gpu {
namespace {

constexpr std::size_t pages_at_once = 4096;
constexpr std::size_t most_looked_at = std::size_t{16} << 30; // bytes

/// Bytes of `data` in pages that are not committed; 0 where the system does not report this.
std::size_t untouched_of(const char* data, std::size_t bytes, std::size_t page) {
  std::array<unsigned char, pages_at_once> there{};
  if (::mincore(const_cast<char*>(data), bytes, there.data()) != 0) return 0;
  std::size_t touched = 0;
  for (std::size_t i = 0; i * page < bytes; ++i)
    if ((there[i] & 1) != 0) touched += std::min(page, bytes - i * page);
  return bytes - touched;
}

/// Estimates untouched_of() from every `step`-th piece of the memory.
std::size_t untouched_of_pieces(const char* data, std::size_t bytes, std::size_t page,
                                std::size_t step) {
  const std::size_t piece = pages_at_once * page;
  std::size_t looked_at = 0, untouched = 0;
  for (std::size_t at = 0; at < bytes; at += step * piece) {
    const std::size_t part = std::min(bytes - at, piece);
    looked_at += part;
    untouched += untouched_of(data + at, part, page);
  }
  if (looked_at == bytes) return untouched;
  return static_cast<std::size_t>(static_cast<double>(bytes) * static_cast<double>(untouched) /
                                  static_cast<double>(looked_at));
}

} // namespace

void memory_meter::add(const void* data, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  parts_[data] = bytes;
  look_again_ = {};
}

void memory_meter::remove(const void* data) {
  const std::lock_guard lock(mutex_);
  parts_.erase(data);
  look_again_ = {};
}

std::int64_t memory_meter::untouched_bytes() const {
  const std::lock_guard lock(mutex_);
  const auto began = clock::now();
  if (began < look_again_) return untouched_bytes_;
  untouched_bytes_ = look();
  const auto ended = clock::now();
  look_again_ = ended + 50 * (ended - began);
  return untouched_bytes_;
}

std::int64_t memory_meter::look() const {
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::size_t all = 0, untouched = 0;
  for (const auto& [data, bytes] : parts_)
    all += bytes;
  const std::size_t step = 1 + all / most_looked_at;
  for (const auto& [data, bytes] : parts_)
    untouched += untouched_of_pieces(static_cast<const char*>(data), bytes, page, step);
  return static_cast<std::int64_t>(untouched);
}

std::shared_ptr<const memory_meter> meter_of(const device& dev) {
  return dev.where().meter();
}

} // namespace twill::gpu
