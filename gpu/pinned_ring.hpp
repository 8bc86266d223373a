// pinned_ring: host memory in which a step leaves what the device is to read, without waiting for
// the steps before it.
//
// A ring has slots that steps use in turn. begin() gives the next one, and blocks only where the
// device has not yet read what it held; device::enqueue_upload() takes it from there, and end()
// marks the place in the device's work after which the slot is free again. On the device's thread.
// A device that refuses a marker is device_lost.
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
  /// All copies out of the slot have been enqueued on the device.
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
