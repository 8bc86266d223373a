// A disk_store (the storage of the disk tier) in memory, whose reads return whatever bytes a test
// has put in place of those that were written.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "models/offload/streams/disk_store.hpp"

namespace twill::test {

/// The bytes of a store, shared with the test.
struct shown_bytes {
  std::string written;
  const std::string* instead = nullptr; ///< what reads return; null: `written`

  const std::string& shown() const { return instead == nullptr ? written : *instead; }
};

class shown_store final : public models::offload::disk_store {
public:
  explicit shown_store(std::shared_ptr<shown_bytes> bytes) : bytes_(std::move(bytes)) {}

  models::result<nothing> write(std::int64_t offset, const void* from,
                                std::int64_t bytes) override {
    const auto begin = static_cast<std::size_t>(offset), n = static_cast<std::size_t>(bytes);
    if (bytes_->written.size() < begin + n) bytes_->written.resize(begin + n);
    std::memcpy(bytes_->written.data() + begin, from, n);
    return nothing{};
  }
  models::result<nothing> read(std::int64_t offset, void* to, std::int64_t bytes) override {
    const auto begin = static_cast<std::size_t>(offset), n = static_cast<std::size_t>(bytes);
    if (bytes_->shown().size() < begin + n)
      return models::failure{models::errc::file_unreadable, "shown store: it ends before that"};
    std::memcpy(to, bytes_->shown().data() + begin, n);
    return nothing{};
  }
  std::string describe() const override { return "shown store"; }

private:
  std::shared_ptr<shown_bytes> bytes_;
};

} // namespace twill::test
