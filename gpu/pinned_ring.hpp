// pinned_ring: pinned host memory for the data that each step uploads to the device, so that a step
// can be prepared without waiting for the steps before it.
//
// A ring has several buffers (slots) that steps use in turn. begin() returns the next slot; it
// blocks only while the device has not yet read the slot's previous contents. The caller fills the
// slot, passes it to device::enqueue_upload() and calls end(), which records a marker
// (gpu/copy_stream.hpp) after those copies: once the device's work has passed the marker, the slot
// is free again. All calls are made on the device's thread. The error is device_lost where the
// device refuses a marker.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "gpu/copy_stream.hpp"

namespace twill::gpu {

class pinned_ring {
public:
  static result<pinned_ring> create(std::size_t slot_bytes, const char* label, int slots = 2);

  /// The next slot, 64-byte aligned.
  [[nodiscard]] result<unsigned char*> begin();
  /// To be called once all copies out of the slot have been enqueued on the device.
  void end(device& dev);

private:
  struct slot {
    unsigned char* memory = nullptr;
    marker read;
    bool used = false;
  };
  host_buffer memory_;
  std::vector<std::unique_ptr<slot>> slots_;
  std::size_t at_ = 0;
};

} // namespace twill::gpu
