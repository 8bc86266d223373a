// copy_stream, marker, host_buffer: transfers between host and device memory beside the compute.
//
// Threads: each copy_stream belongs to one thread, which is not the device's; a copy blocks that
// thread alone. A marker is recorded by the device's thread and waited for by any other. A
// host_buffer is page-aligned memory of the host. Where the device is another chip it is pinned
// unless told otherwise, because copies of memory that is not pinned are slower. Failures: memory
// that is refused is out_of_memory; a copy or a wait that the device refuses is device_lost.
#pragma once

#include <cstddef>
#include <memory>

#include "gpu/device.hpp"

namespace twill::gpu {

/// True where device memory is this process's own: files can be read straight into it. False for
/// the whole process once it has opened a device on another chip.
bool device_memory_is_host();

/// Owns host memory, zero-filled. Movable.
class host_buffer {
public:
  static result<host_buffer> allocate(std::size_t bytes, const char* label, bool pinned = true);
  host_buffer() = default;
  host_buffer(host_buffer&& other) noexcept;
  host_buffer& operator=(host_buffer&& other) noexcept;
  ~host_buffer();

  unsigned char* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

private:
  unsigned char* data_ = nullptr;
  std::size_t bytes_ = 0;
  void (*unpin_)(void*) =
      nullptr; ///< how the device's runtime frees it; null: mapped by the system
};

/// Copies on a stream of their own; each returns when its copy is done.
class copy_stream {
public:
  copy_stream();
  copy_stream(const copy_stream&) = delete;
  copy_stream& operator=(const copy_stream&) = delete;
  ~copy_stream();
  [[nodiscard]] result<nothing> to_device(void* device_dst, const void* host_src,
                                          std::size_t bytes);
  [[nodiscard]] result<nothing> to_host(void* host_dst, const void* device_src, std::size_t bytes);

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// A point in the device's work: everything that was launched before it is done after wait().
class marker {
public:
  marker();
  marker(const marker&) = delete;
  marker& operator=(const marker&) = delete;
  ~marker();
  /// On the device's thread.
  void record();
  /// On any thread, after record() returned; blocks that thread alone. device_lost where the device
  /// refused the marker or its recording.
  [[nodiscard]] result<nothing> wait();

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace twill::gpu
