// copy_stream, marker, host_buffer: transfers between host and device memory beside the compute.
//
// Threads: each copy_stream belongs to one thread, which is not the device's; a copy blocks that
// thread alone, or nobody where it is only begun. A marker is recorded by the device's thread, or
// for the copies of a stream by that stream's, and waited for by any other thread or by the device
// itself. A host_buffer is page-aligned memory of the host. Where the device is another chip it is
// pinned unless told otherwise, because copies of memory that is not pinned are slower. Failures:
// memory that is refused is out_of_memory; a copy or a wait that the device refuses is device_lost.
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

class marker;

/// Copies on a stream of their own.
class copy_stream {
public:
  copy_stream();
  copy_stream(const copy_stream&) = delete;
  copy_stream& operator=(const copy_stream&) = delete;
  ~copy_stream();
  /// These return when the copy is done.
  [[nodiscard]] result<nothing> to_device(void* device_dst, const void* host_src,
                                          std::size_t bytes);
  [[nodiscard]] result<nothing> to_host(void* host_dst, const void* device_src, std::size_t bytes);
  /// Returns when the copy is under way. The host memory stays as it is until a marker of this
  /// stream that is recorded afterwards has passed.
  [[nodiscard]] result<nothing> begin_to_device(void* device_dst, const void* pinned_src,
                                                std::size_t bytes);
  /// Copies that are begun from now on wait for the marker, not this thread.
  [[nodiscard]] result<nothing> follow(const marker& point);

private:
  friend class marker;
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// A point in the device's work, or in the copies of a stream: everything that was launched or
/// begun before it is done after wait().
class marker {
public:
  marker();
  marker(const marker&) = delete;
  marker& operator=(const marker&) = delete;
  ~marker();
  /// On the device's thread: the end of what was launched on the device so far.
  void record(device& dev);
  /// On the stream's thread.
  void record(copy_stream& copies);
  /// On any thread, after record() returned; blocks that thread alone. device_lost where the device
  /// refused the marker or its recording.
  [[nodiscard]] result<nothing> wait();
  /// Ops that are launched on the device from now on wait for the point, not this thread, which is
  /// the device's.
  [[nodiscard]] result<nothing> device_follows(device& dev);

private:
  friend class copy_stream;
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace twill::gpu
