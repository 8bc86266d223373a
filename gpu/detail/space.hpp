// space: where a device's memory lies and its kernels run: this process, or another chip.
//
// A device owns one. The device's thread alone calls it, except for facts(). Copies block until the
// host's memory may be used again. A call that the chip refuses is device_lost.
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
  std::string kind;             ///< host | cuda, or that of another chip_kind
  std::string name;             ///< processor or board
  std::string backend;          ///< "Kokkos 3.4.1 OpenMP", ...
  std::int64_t memory_bytes;    ///< what a device may take where nothing else is configured
  bool is_host;                 ///< device memory is this process's own
  std::int64_t spare_bytes = 0; ///< free memory beside memory_bytes, for what stays outside it
  bool multiplies_bf16 = false; ///< whatever the host's instruction set is
  bool multiplies_f16 = false, half_activations = false; ///< see device_info
};

class space {
public:
  virtual ~space() = default;
  virtual const space_facts& facts() const = 0;
  virtual const op_backends& ops() const = 0;
  /// What Kokkos launches on, for launcher; null on the host.
  virtual const void* instance() const = 0;

  /// Zero-filled memory, 64-byte aligned; null where it is refused. `huge_pages` asks a host for
  /// them.
  virtual void* allocate(std::size_t bytes, bool huge_pages) = 0;
  /// Waits for the ops that were launched before, which may use the memory.
  virtual void free(void* data, std::size_t bytes) noexcept = 0;
  virtual result<nothing> upload(void* device_dst, const void* host_src, std::size_t bytes) = 0;
  virtual result<nothing> download(void* host_dst, const void* device_src, std::size_t bytes) = 0;
  /// The same in the order of the ops that were launched, without waiting: the host's memory is
  /// pinned and stays as it is until a marker that is recorded afterwards has passed.
  virtual result<nothing> enqueue_upload(void* device_dst, const void* host_src,
                                         std::size_t bytes) = 0;
  virtual result<nothing> enqueue_download(void* host_dst, const void* device_src,
                                           std::size_t bytes) = 0;
  virtual result<nothing> fence() = 0;
  /// After a call was refused: whether this process can use the chip no more.
  virtual bool is_lost() { return false; }
  /// Bytes of the chip that were taken since the space was opened beside what allocate() gave,
  /// whoever took them.
  virtual std::int64_t outside_bytes() { return 0; }
  /// Of what allocate() gave; null where memory is taken when it is allocated. Any thread.
  virtual std::shared_ptr<const memory_meter> meter() const { return nullptr; }
};

/// This process. `threads` counts the threads of Kokkos' pool.
std::unique_ptr<space> open_host_space(std::int32_t threads);

/// A kind of chip that kernels can run on instead of this process's processor.
struct chip_kind {
  const char* kind;     ///< the word in device.kind
  bool (*is_present)(); ///< whether this build is for it and the machine has one
  /// Chip number `id`, with `threads` in Kokkos' pool on the host; an error that says what to do
  /// where it is not present.
  result<std::unique_ptr<space>> (*open)(std::int32_t id, std::int32_t threads);
};

/// The kinds that device::open() knows beside the host; "auto" takes the first that is present.
/// Tests add their own while no other thread opens a device; the span's memory stays theirs.
std::span<const chip_kind> chips();
void use_chips(std::span<const chip_kind> kinds);

/// Says that this process can use its chip no more: no device opens from now on, unless use_chips()
/// brings another. Any thread.
void lose_chip();

/// Whether this build has CUDA and the machine a GPU for it.
bool cuda_is_present();
/// GPU number `id`. not_built where this build has no CUDA or the machine no such GPU.
result<std::unique_ptr<space>> open_cuda_space(std::int32_t id, std::int32_t threads);

} // namespace twill::gpu::detail
