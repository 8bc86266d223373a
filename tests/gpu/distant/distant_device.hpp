// A device on the host that behaves as a GPU does, and is one more backend of gpu/: it brings what
// gpu/portable/README.md lists, with tests/gpu/distant/chip.hpp for its hardware and the portable
// forms in Kokkos' Serial space for its ops.
//
// Its memory cannot be touched: code that reads or writes device memory by itself, or hands it to
// an implementation of the host, ends with SIGSEGV here as it would on a GPU. Ops and copies that
// are only begun are done as late as they may be: code that reads a result, or reuses memory that
// is still to be read, before it has waited gets wrong values.
#pragma once

#include <memory>

#include "gpu/device.hpp"

namespace twill::gpu::detail {
struct transfer_backend;
}

namespace twill::test {

/// A distant device beside the host's: the process's copies stay what they are.
std::unique_ptr<gpu::device> open_distant(const gpu::device_config& config);

/// While one lives, the process's copies are the distant device's. One at a time.
class distant_transfers {
public:
  distant_transfers();
  distant_transfers(const distant_transfers&) = delete;
  distant_transfers& operator=(const distant_transfers&) = delete;
  ~distant_transfers();

private:
  const gpu::detail::transfer_backend* usual_;
};

/// While one lives, device.kind "distant" opens a distant device, and the process's copies are its
/// own from then on, as after a GPU was opened. One at a time.
class distant_kind {
public:
  distant_kind();
  distant_kind(const distant_kind&) = delete;
  distant_kind& operator=(const distant_kind&) = delete;
  ~distant_kind();
  /// From now on devices of this kind fail at whatever is waited for, and none can be opened, as
  /// after a fault of a GPU.
  void lose();

private:
  const gpu::detail::transfer_backend* usual_;
};

} // namespace twill::test
