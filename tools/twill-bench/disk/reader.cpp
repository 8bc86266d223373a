#include "tools/twill-bench/disk/reader.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <new>
#include <stdexcept>
#include <utility>

#include "models/offload/io_pool.hpp"

namespace twill::bench {
namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20;
using models::offload::transfer_bytes;

/// In huge pages where the system has them: reads scattered over small ones take twice as long.
unsigned char* ring_memory(std::int64_t bytes) {
  constexpr std::int64_t huge_page = 2 * mib;
  const auto size = static_cast<std::size_t>((bytes + huge_page - 1) / huge_page * huge_page);
  void* const memory = std::aligned_alloc(huge_page, size);
  if (memory == nullptr) throw std::bad_alloc();
  ::madvise(memory, size, MADV_HUGEPAGE);
  return static_cast<unsigned char*>(memory);
}

} // namespace

disk_reader::disk_reader(const disk_reading& what)
    : parts_(what.file_mib * mib / transfer_bytes), slots_(what.ring_mib * mib / transfer_bytes),
      ring_(ring_memory(slots_ * transfer_bytes), std::free) {
  auto opened = models::offload::open_file_store(what.dir, what.direct);
  if (!opened.ok()) throw std::runtime_error(opened.detail());
  store_ = std::move(opened).value();
  std::uint64_t state = 1; // not zeros, which some disks do not store
  for (std::int64_t part = 0; part < parts_; ++part) {
    unsigned char* const from = ring_.get() + part % slots_ * transfer_bytes;
    for (std::int64_t at = 0; at < transfer_bytes; at += 8) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      for (int byte = 0; byte < 8; ++byte)
        from[at + byte] = static_cast<unsigned char>(state >> (8 * byte));
    }
    if (auto written = store_->write(part * transfer_bytes, from, transfer_bytes); !written.ok())
      throw std::runtime_error(written.detail());
  }
  for (std::int32_t n = 0; n < what.readers; ++n)
    threads_.emplace_back([this] { read(); });
}

disk_reader::~disk_reader() {
  stop_ = true;
  for (std::thread& t : threads_)
    t.join();
}

void disk_reader::read() {
  while (!stop_) {
    const std::int64_t n = next_++;
    const auto got = store_->read(n % parts_ * transfer_bytes,
                                  ring_.get() + n % slots_ * transfer_bytes, transfer_bytes);
    if (got.ok()) {
      bytes_ += transfer_bytes;
    } else if (!stop_.exchange(true)) {
      error_ = got.detail();
      failed_ = true;
    }
  }
}

std::string disk_reader::error() const {
  return failed_ ? error_ : std::string();
}

} // namespace twill::bench
