#include "tools/twill-bench/disk/reader.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <new>
#include <stdexcept>
#include <utility>

#include "models/offload/streams/io_pool.hpp"

namespace twill::bench {
namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20;
using models::offload::disk_store;
using models::offload::transfer_bytes;

/// Allocates the memory into which the file is read over and over. It consists of huge pages where
/// the system has them, because reads into small pages scattered over memory take twice as long.
unsigned char* ring_memory(std::int64_t bytes) {
  constexpr std::int64_t huge_page = 2 * mib;
  const auto size = static_cast<std::size_t>((bytes + huge_page - 1) / huge_page * huge_page);
  void* const memory = std::aligned_alloc(huge_page, size);
  if (memory == nullptr) throw std::bad_alloc();
  ::madvise(memory, size, MADV_HUGEPAGE);
  return static_cast<unsigned char*>(memory);
}

std::unique_ptr<disk_store> opened(models::result<std::unique_ptr<disk_store>> store) {
  if (!store.ok()) throw std::runtime_error(store.detail());
  return std::move(store).value();
}

} // namespace

disk_reader::disk_reader(const disk_reading& settings)
    : slots_(settings.ring_mib * mib / transfer_bytes),
      ring_(ring_memory(slots_ * transfer_bytes), std::free) {
  if (settings.file.empty()) {
    write_own(settings);
  } else {
    store_ = opened(models::offload::open_stored_file(settings.file, settings.direct));
    parts_ = stored_parts(settings.file);
  }
  for (std::int32_t n = 0; n < settings.readers; ++n)
    threads_.emplace_back([this] { read(); });
}

void disk_reader::write_own(const disk_reading& settings) {
  store_ = opened(models::offload::open_file_store(settings.dir, settings.direct));
  std::uint64_t state = 1; // random data, because some disks do not store zeros
  for (std::int64_t part = 0; part < settings.file_mib * mib / transfer_bytes; ++part) {
    unsigned char* const from = ring_.get() + part % slots_ * transfer_bytes;
    for (std::int64_t at = 0; at < transfer_bytes; at += 8) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      for (int byte = 0; byte < 8; ++byte)
        from[at + byte] = static_cast<unsigned char>(state >> (8 * byte));
    }
    parts_.push_back({part * transfer_bytes, transfer_bytes});
    if (auto written = store_->write(parts_.back().offset, from, transfer_bytes); !written.ok())
      throw std::runtime_error(written.detail());
  }
}

disk_reader::~disk_reader() {
  stop_ = true;
  for (std::thread& t : threads_)
    t.join();
}

void disk_reader::read() {
  while (!stop_) {
    const std::int64_t n = next_++;
    const stored_part& part = parts_[static_cast<std::size_t>(n) % parts_.size()];
    const auto bytes_read =
        store_->read(part.offset, ring_.get() + n % slots_ * transfer_bytes, part.bytes);
    if (bytes_read.ok()) {
      bytes_ += part.bytes;
    } else if (!stop_.exchange(true)) {
      error_ = bytes_read.detail();
      failed_ = true;
    }
  }
}

std::string disk_reader::error() const {
  return failed_ ? error_ : std::string();
}

} // namespace twill::bench
