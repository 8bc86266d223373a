// A device on the host whose memory cannot be touched, as a GPU's cannot: its pages are protected
// except while one of its ops or copies runs. Code that reads or writes device memory by itself, or
// hands it to an implementation of the host, ends with SIGSEGV here as it would on a GPU. The ops
// are the portable ones.
#pragma once

#include <memory>

#include "gpu/device.hpp"

namespace twill::gpu::detail {
struct transfer_backend;
}

namespace twill::test {

std::unique_ptr<gpu::device> open_distant(const gpu::device_config& config);

/// While one lives, copy streams and markers know that device memory is not the host's, as they do
/// after a GPU was opened. One at a time.
class distant_transfers {
public:
  distant_transfers();
  distant_transfers(const distant_transfers&) = delete;
  distant_transfers& operator=(const distant_transfers&) = delete;
  ~distant_transfers();

private:
  const gpu::detail::transfer_backend* usual_;
  std::unique_ptr<gpu::detail::transfer_backend> distant_;
};

} // namespace twill::test
