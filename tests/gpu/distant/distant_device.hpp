// A device on the host that behaves as a GPU does, as one more backend of gpu/. It implements what
// gpu/portable/README.md lists: tests/gpu/distant/chip.hpp stands for the hardware, and the ops are
// the portable implementations in Kokkos' Serial space.
//
// Its memory cannot be touched: code that reads or writes device memory directly, or passes it to
// an implementation of the host, ends with SIGSEGV here as it would on a GPU. Asynchronous ops and
// copies run as late as the interface allows, so code that reads a result or reuses memory before
// it has waited for the op gets wrong values.
#pragma once

#include <memory>

#include "gpu/device.hpp"

namespace twill::gpu::detail {
struct transfer_backend;
}

namespace twill::test {

/// Opens a distant device without changing how the process copies between host and device.
std::unique_ptr<gpu::device> open_distant(const gpu::device_config& config);

/// While an object of this class exists, the process's copies between host and device go through
/// the distant device. At most one such object may exist at a time.
class distant_transfers {
public:
  distant_transfers();
  distant_transfers(const distant_transfers&) = delete;
  distant_transfers& operator=(const distant_transfers&) = delete;
  ~distant_transfers();

private:
  const gpu::detail::transfer_backend* usual_;
};

/// While an object of this class exists, device.kind "distant" opens a distant device, and from
/// then on the process's copies go through that device, as after a GPU was opened. At most one such
/// object may exist at a time.
class distant_kind {
public:
  distant_kind();
  distant_kind(const distant_kind&) = delete;
  distant_kind& operator=(const distant_kind&) = delete;
  ~distant_kind();
  /// From now on all waits for distant devices fail, and none can be opened, as after a fault of a
  /// GPU.
  void lose();

private:
  const gpu::detail::transfer_backend* usual_;
};

} // namespace twill::test
