// disk_reader: threads that read a file as fast as the disk gives it, as the disk tier is read:
// parts of `transfer_bytes`, straight into long stretches of memory, again and again. What is read
// is dropped.
//
// Threads: its own while it lives; bytes() from any thread. A file of its own is gone when it is.
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
  std::string file;   ///< one that is there, read where it holds data; empty: one of its own
  std::string dir;    ///< of its own file; empty: the system's folder for temporary files
  bool direct = true; ///< past the page cache
  std::int64_t file_mib = 256; ///< so much is written first
  std::int64_t ring_mib = 32;  ///< where reads go, over and over: a few layers of a small model
  std::int32_t readers = 4;    ///< reads under way
};

class disk_reader {
public:
  /// Begins to read, once its own file is written. Throws std::runtime_error: no folder, no file,
  /// no space, no memory.
  explicit disk_reader(const disk_reading& settings);
  disk_reader(const disk_reader&) = delete;
  disk_reader& operator=(const disk_reader&) = delete;
  ~disk_reader();

  /// So far.
  std::int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  /// What ended the reading early; empty while nothing did.
  std::string error() const;
  /// Of the file, each read in turn.
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
