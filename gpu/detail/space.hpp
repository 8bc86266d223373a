// space: the place where a device's memory lies and its kernels run: this process, or a GPU.
//
// A device owns one space. Only the device's thread calls it, except for facts() and meter(), which
// any thread may call. upload() and download() block until the host memory may be used again. A
// call that the GPU refuses gives device_lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "config/base/result.hpp"
#include "gpu/errc.hpp"

namespace twill::gpu {
class memory_meter;
}

namespace twill::gpu::detail {

struct op_backends;

struct space_facts {
  std::string kind;             ///< host | cuda, or the kind of another chip_kind
  std::string name;             ///< processor or board
  std::string backend;          ///< "Kokkos 3.4.1 OpenMP", ...
  std::int64_t memory_bytes;    ///< what a device may take where no budget is configured
  bool is_host;                 ///< device memory is ordinary memory of this process
  std::int64_t spare_bytes = 0; ///< free memory that is not in memory_bytes: see device_info
  bool multiplies_bf16 = false; ///< regardless of the host's instruction set
  bool multiplies_f16 = false, half_activations = false; ///< see device_info
};

class space {
public:
  virtual ~space() = default;
  virtual const space_facts& facts() const = 0;
  virtual const op_backends& ops() const = 0;
  /// The Kokkos execution space instance that launcher launches kernels on; null on the host.
  virtual const void* instance() const = 0;

  /// Returns zero-filled memory, 64-byte aligned, or null where the memory is refused. With
  /// `huge_pages` a host backs the memory with huge pages from the start.
  virtual void* allocate(std::size_t bytes, bool huge_pages) = 0;
  /// Waits for the ops launched so far, since they may use the memory, and then frees it.
  virtual void free(void* data, std::size_t bytes) noexcept = 0;
  virtual result<nothing> upload(void* device_dst, const void* host_src, std::size_t bytes) = 0;
  virtual result<nothing> download(void* host_dst, const void* device_src, std::size_t bytes) = 0;
  /// enqueue_upload() and enqueue_download() enqueue a copy that runs in order with the launched
  /// ops, and do not wait. The host memory must be pinned. It must not change until the device has
  /// passed a marker (a point in its work, see gpu/copy_stream.hpp) that was recorded after this
  /// call.
  virtual result<nothing> enqueue_upload(void* device_dst, const void* host_src,
                                         std::size_t bytes) = 0;
  virtual result<nothing> enqueue_download(void* host_dst, const void* device_src,
                                           std::size_t bytes) = 0;
  virtual result<nothing> fence() = 0;
  /// To be called after a call was refused: whether this process can no longer use the GPU.
  virtual bool is_lost() { return false; }
  /// Bytes of the GPU's memory that were taken since this object was opened, without those that
  /// allocate() took. Memory of other processes counts.
  virtual std::int64_t outside_bytes() { return 0; }
  /// The object that measures how much of the memory that allocate() has returned was never touched
  /// (gpu/memory_meter.hpp); null where an allocation takes its memory at once. Any thread.
  virtual std::shared_ptr<const memory_meter> meter() const { return nullptr; }
};

/// Opens a space in this process. `threads` is the number of threads in Kokkos' pool.
std::unique_ptr<space> open_host_space(std::int32_t threads);

/// A kind of chip that kernels can run on instead of this process's processor.
struct chip_kind {
  const char* kind;     ///< the value of device.kind that selects this kind
  bool (*is_present)(); ///< whether this build supports the kind and the machine has such a chip
  /// Opens chip number `id`; `threads` is the number of threads in Kokkos' pool on the host. Where
  /// the chip is not present, the error says what the user can do.
  result<std::unique_ptr<space>> (*open)(std::int32_t id, std::int32_t threads);
};

/// The kinds of chips that device::open() can open beside the host; "auto" takes the first kind
/// that is present. Tests replace the kinds by use_chips() while no other thread opens a device.
/// The caller of use_chips() keeps the memory of `kinds` valid.
std::span<const chip_kind> chips();
void use_chips(std::span<const chip_kind> kinds);

/// Records that this process can no longer use its GPU: afterwards no device but the host's opens,
/// until use_chips() installs other kinds. Any thread.
void lose_chip();

/// Whether this build has CUDA and the machine has a GPU that the build supports.
bool cuda_is_present();
/// Opens GPU number `id`. The error is not_built where this build has no CUDA or the machine has no
/// such GPU.
result<std::unique_ptr<space>> open_cuda_space(std::int32_t id, std::int32_t threads);

} // namespace twill::gpu::detail
