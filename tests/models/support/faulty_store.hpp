// A disk tier in memory that fails on demand: a full disk, short reads, flipped bits.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "models/offload/streams/disk_store.hpp"

namespace twill::test {

/// The faults to cause; shared with the test.
struct store_faults {
  std::int64_t capacity = std::int64_t{1} << 40; ///< writes beyond this size fail
  std::atomic<std::int64_t> reads{0};            ///< the number of reads so far
  std::atomic<std::int64_t> fail_read{-1};       ///< reads from this number on fail
  std::atomic<std::int64_t> flip_read{-1};       ///< reads from this number on have a flipped bit
};

class faulty_store final : public models::offload::disk_store {
public:
  explicit faulty_store(std::shared_ptr<store_faults> faults) : faults_(std::move(faults)) {}

  models::result<twill::nothing> write(std::int64_t offset, const void* from,
                                       std::int64_t bytes) override {
    const std::lock_guard lock(mutex_);
    if (offset + bytes > faults_->capacity)
      return models::failure{models::errc::file_unwritable, "scripted: no space left on device"};
    if (bytes_.size() < static_cast<std::size_t>(offset + bytes))
      bytes_.resize(static_cast<std::size_t>(offset + bytes));
    std::memcpy(bytes_.data() + offset, from, static_cast<std::size_t>(bytes));
    return nothing{};
  }
  models::result<twill::nothing> read(std::int64_t offset, void* to, std::int64_t bytes) override {
    // The faults are read before the counter is raised, since a test that sees the new count may
    // already set the faults of the next read.
    const std::int64_t fail = faults_->fail_read, flip = faults_->flip_read;
    const std::int64_t number = faults_->reads.fetch_add(1);
    const auto hit = [number](std::int64_t from) { return from >= 0 && number >= from; };
    if (hit(fail))
      return models::failure{models::errc::file_unreadable, "scripted: the file ends before that"};
    const std::lock_guard lock(mutex_);
    std::memcpy(to, bytes_.data() + offset, static_cast<std::size_t>(bytes));
    if (hit(flip)) static_cast<unsigned char*>(to)[bytes / 2] ^= 4;
    return nothing{};
  }
  std::string describe() const override { return "scripted store"; }

private:
  std::shared_ptr<store_faults> faults_;
  std::mutex mutex_; ///< protects bytes_
  std::vector<unsigned char> bytes_;
};

} // namespace twill::test
