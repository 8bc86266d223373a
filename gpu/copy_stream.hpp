// copy_stream, marker, host_buffer: transfers between host and device memory that run beside the
// device's ops.
//
// Threads: each copy_stream belongs to one thread, which must not be the device's thread.
// to_device() and to_host() block that thread alone; begin_to_device() blocks no thread. The
// device's thread records markers in the device's work, and a stream's thread records markers in
// the stream's copies; any other thread, or the device itself, may wait for a marker. (A marker is
// a point in a stream of work, as a CUDA event is.) A host_buffer is page-aligned host memory. With
// a GPU a host_buffer is pinned unless the caller asks otherwise, because copies of memory that is
// not pinned are slower. Failures: a refused allocation is out_of_memory; a copy or a wait that the
// device refuses is device_lost.
#pragma once

#include <cstddef>
#include <memory>

#include "gpu/device.hpp"

namespace twill::gpu {

/// True where device memory is ordinary memory of this process, so that files can be read straight
/// into it. Once the process has opened a GPU, the result is false for ever.
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
      nullptr; ///< the GPU runtime's function that frees `data_`; null: the system mapped `data_`
};

class marker;

/// Copies between host and device, on a stream of their own beside the compute stream.
class copy_stream {
public:
  copy_stream();
  copy_stream(const copy_stream&) = delete;
  copy_stream& operator=(const copy_stream&) = delete;
  ~copy_stream();
  /// to_device() and to_host() return when the copy is done.
  [[nodiscard]] result<nothing> to_device(void* device_dst, const void* host_src,
                                          std::size_t bytes);
  [[nodiscard]] result<nothing> to_host(void* host_dst, const void* device_src, std::size_t bytes);
  /// Returns once the copy has begun. The host memory must not change until the copy is done, that
  /// is, until wait() has returned for a marker (a point among the stream's copies) that was
  /// recorded after this call.
  [[nodiscard]] result<nothing> begin_to_device(void* device_dst, const void* pinned_src,
                                                std::size_t bytes);
  /// Makes every copy that is begun after this call wait for the work before `point`; the calling
  /// thread does not wait.
  [[nodiscard]] result<nothing> follow(const marker& point);

private:
  friend class marker;
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// A point in the device's work or in the copies of a stream. When wait() returns, everything that
/// was launched or begun before the point is done.
class marker {
public:
  marker();
  marker(const marker&) = delete;
  marker& operator=(const marker&) = delete;
  ~marker();
  /// Sets the point to the end of the work that was launched on the device so far. Called on the
  /// device's thread.
  void record(device& dev);
  /// Sets the point to the end of the copies that the stream has begun so far. Called on the
  /// stream's thread.
  void record(copy_stream& copies);
  /// Waits for the point. It may be called on any thread after record() has returned and blocks the
  /// calling thread alone. The result is device_lost where the device refused to create or to
  /// record the marker.
  [[nodiscard]] result<nothing> wait();
  /// Makes ops that are launched on the device after this call wait for the point; the calling
  /// thread, which must be the device's, does not wait.
  [[nodiscard]] result<nothing> device_follows(device& dev);

private:
  friend class copy_stream;
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace twill::gpu
