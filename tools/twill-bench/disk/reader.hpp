// disk_reader: threads that read a file as fast as the disk allows. They read as twill reads
// weights that are offloaded to disk: in parts of `transfer_bytes`
// (models/offload/streams/io_pool.hpp), directly into a large contiguous buffer. At the end of the
// file they start again from its beginning. The data is not used.
//
// The object has threads of its own while it lives; bytes() may be called from any thread. The
// destructor removes a file that the object wrote itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "models/offload/streams/disk_store.hpp"
#include "tools/twill-bench/disk/stored_parts.hpp"

namespace twill::bench {

struct disk_reading {
  /// An existing file to read, without its holes; empty: the reader writes a file of its own.
  std::string file;
  /// Folder of the reader's own file; empty: the system's folder for temporary files.
  std::string dir;
  bool direct = true;          ///< reads bypass the page cache
  std::int64_t file_mib = 256; ///< size of the reader's own file
  /// Size of the memory that reads go to, over and over: as much as a few layers of a small model.
  std::int64_t ring_mib = 32;
  std::int32_t readers = 4; ///< number of reads under way at once
};

class disk_reader {
public:
  /// If `settings.file` is "", writes a file of its own into the folder `settings.dir`. Then begins
  /// to read. Throws std::runtime_error when the file or the folder is missing, or when there is
  /// too little space or memory.
  explicit disk_reader(const disk_reading& settings);
  disk_reader(const disk_reader&) = delete;
  disk_reader& operator=(const disk_reader&) = delete;
  ~disk_reader();

  /// Bytes read so far.
  std::int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  /// The error that ended the reading early; empty when there was none.
  std::string error() const;
  /// The parts of the file, which are read one after the other.
  const std::vector<stored_part>& parts() const { return parts_; }
  std::string describe() const { return store_->describe(); }

private:
  void write_own(const disk_reading& settings);
  void read();

  std::int64_t slots_ = 0;
  std::vector<stored_part> parts_;
  std::unique_ptr<models::offload::disk_store> store_;
  std::unique_ptr<unsigned char, void (*)(void*)> ring_;
  std::atomic<std::int64_t> next_{0}, bytes_{0};
  std::atomic<bool> stop_{false}, failed_{false};
  std::string error_; ///< written once, before `failed_`
  std::vector<std::thread> threads_;
};

} // namespace twill::bench
