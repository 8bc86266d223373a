#include "tests/gpu/slow_device.hpp"

#include <condition_variable>
#include <mutex>
#include <string>

#include "gpu/detail/transfer_backend.hpp"

namespace twill::test {

namespace {

std::mutex mutex;
std::condition_variable changed;
int n_waits_over = 0; ///< waits that may end, and have not
bool lost = false;

gpu::result<nothing> wait(void*) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [] { return n_waits_over > 0; });
  --n_waits_over;
  if (lost) return failure{gpu::errc::device_lost, std::string("waiting for the device: gone")};
  return nothing{};
}

} // namespace

slow_device::slow_device()
    : usual_(&gpu::detail::transfers()),
      slow_(std::make_unique<gpu::detail::transfer_backend>(*usual_)) {
  n_waits_over = 0;
  lost = false;
  slow_->wait = wait;
  gpu::detail::use_transfers(*slow_);
}
slow_device::~slow_device() {
  gpu::detail::use_transfers(*usual_);
}
void slow_device::let_pass(int waits) {
  const std::lock_guard lock(mutex);
  n_waits_over += waits;
  changed.notify_all();
}
void slow_device::lose() {
  const std::lock_guard lock(mutex);
  lost = true;
}

} // namespace twill::test
