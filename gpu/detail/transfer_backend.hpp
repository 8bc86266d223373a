// transfer_backend: the functions behind gpu/copy_stream.hpp, one table per kind of device. A
// process starts with the host's table. Opening a GPU replaces the table for the rest of the
// process, since the GPU's copy functions also work between host addresses. One table per process
// is enough: a build of Kokkos supports at most one kind of GPU.
#pragma once

#include <cstddef>

#include "gpu/device.hpp"

namespace twill::gpu::detail {

class space;

struct transfer_backend {
  bool device_is_host; ///< device memory is ordinary memory of this process
  /// pin() returns pinned, zero-filled host memory, or null where it is refused. Where pin and
  /// unpin are null, ordinary memory of the system is used instead.
  void* (*pin)(std::size_t bytes);
  void (*unpin)(void* data);
  /// Creates a stream, which one thread uses.
  result<void*> (*make_stream)();
  void (*drop_stream)(void* stream);
  /// Returns when the copy is done.
  result<nothing> (*to_device)(void* stream, void* to, const void* from, std::size_t bytes);
  result<nothing> (*to_host)(void* stream, void* to, const void* from, std::size_t bytes);
  /// Returns once the copy has begun; the copies of a stream end in the order in which they began.
  result<nothing> (*begin_to_device)(void* stream, void* to, const void* from, std::size_t bytes);
  result<void*> (*make_event)();
  void (*drop_event)(void* event);
  /// Sets the event, with which a marker of copy_stream.hpp is implemented, to the end of the work
  /// launched on `on` so far. Called on the thread of the device that owns `on`; that device may
  /// also be a host device.
  result<nothing> (*record)(const space& on, void* event);
  /// Blocks the calling thread, which may be any thread, until the event has passed.
  result<nothing> (*wait)(void* event);
  /// Sets the event to the end of the copies that the stream has begun. On the stream's thread.
  result<nothing> (*record_copies)(void* stream, void* event);
  /// Makes copies that the stream begins after this call wait for the event, which a marker of
  /// copy_stream.hpp has recorded. Called on the stream's thread.
  result<nothing> (*copies_follow)(void* stream, void* event);
  /// Makes work that is launched on `on` after this call wait for the event, which a marker of
  /// copy_stream.hpp has recorded. Called on the thread of the device that owns `on`; that device
  /// may also be a host device.
  result<nothing> (*device_follows)(const space& on, void* event);
};

/// The table of the process.
const transfer_backend& transfers();
void use_transfers(const transfer_backend& table);

} // namespace twill::gpu::detail
