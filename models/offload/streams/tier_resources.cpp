#include "models/offload/streams/tier_resources.hpp"

#include <algorithm>
#include <utility>

#include "gpu/machine.hpp"
#include "models/offload/options.hpp"

namespace twill::models::offload {

bool tier_budget::take(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > limit_ - taken_) return false;
  taken_ += bytes;
  return true;
}

void tier_budget::give_back(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  taken_ -= bytes;
}

std::int64_t tier_budget::taken() const {
  const std::lock_guard lock(mutex_);
  return taken_;
}

std::int64_t tier_budget::free() const {
  const std::lock_guard lock(mutex_);
  return std::max<std::int64_t>(limit_ - taken_, 0);
}

tier_resources::tier_resources()
    : threads_(std::make_shared<io_threads>()), host_(gpu::machine::available_bytes()) {}

result<std::shared_ptr<disk_store>>
tier_resources::open_weight_store(const offload_options& options) {
  close_weight_store(); // before another store takes space on the disk
  auto opened = options.open_store ? options.open_store()
                                   : open_file_store(options.dir, options.direct_reads);
  if (!opened.ok()) return opened.error();
  std::shared_ptr<disk_store> store = std::move(opened).value();
  const std::lock_guard lock(mutex_);
  weights_ = store;
  return store;
}

void tier_resources::close_weight_store() {
  std::shared_ptr<disk_store> closed;
  const std::lock_guard lock(mutex_);
  closed.swap(weights_);
}

} // namespace twill::models::offload
