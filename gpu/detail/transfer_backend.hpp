// transfer_backend: the functions behind gpu/copy_stream.hpp, one table per kind of device. A
// process begins with the host's table; opening a device on another chip changes it for the rest of
// the process, since that chip's copies serve the host's memory as well. One is enough: a Kokkos
// has one kind of chip at most, so no process has two.
#pragma once

#include <cstddef>

#include "gpu/device.hpp"

namespace twill::gpu::detail {

class space;

struct transfer_backend {
  bool device_is_host; ///< device memory is this process's own
  /// Pinned host memory, zero-filled, or null. Null functions: memory of the system will do.
  void* (*pin)(std::size_t bytes);
  void (*unpin)(void* data);
  /// A stream of its own, for one thread.
  result<void*> (*make_stream)();
  void (*drop_stream)(void* stream);
  /// Returns when the copy is done.
  result<nothing> (*to_device)(void* stream, void* to, const void* from, std::size_t bytes);
  result<nothing> (*to_host)(void* stream, void* to, const void* from, std::size_t bytes);
  /// Returns when the copy is under way; copies of a stream end in order.
  result<nothing> (*begin_to_device)(void* stream, void* to, const void* from, std::size_t bytes);
  result<void*> (*make_event)();
  void (*drop_event)(void* event);
  /// On the thread of the device that owns `on`, which may also be a host's: the event is the end
  /// of what was launched there so far.
  result<nothing> (*record)(const space& on, void* event);
  /// On any thread, which alone is blocked.
  result<nothing> (*wait)(void* event);
  /// On the stream's thread: the event is the end of the copies that the stream has begun.
  result<nothing> (*record_copies)(void* stream, void* event);
  /// On the stream's thread: copies that are begun from now on follow the event.
  result<nothing> (*copies_follow)(void* stream, void* event);
  /// On the thread of the device that owns `on`, which may also be a host's: what is launched there
  /// from now on follows the event.
  result<nothing> (*device_follows)(const space& on, void* event);
};

/// The table of the process.
const transfer_backend& transfers();
void use_transfers(const transfer_backend& table);

} // namespace twill::gpu::detail
