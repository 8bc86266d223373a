// device: the place where kernels run, with a memory budget in bytes.
//
// Threads: one thread, the executor's, calls open(), every op and the destructor; Kokkos is
// initialised on that thread. Any thread may call memory_used() and info(). On a host device,
// device memory is memory of this process: the system commits each page when it is first written,
// and the budget caps the total. On a GPU ops are asynchronous: call fence() before the host reads
// their results. Copies and waits that a GPU refuses throw device_lost_error.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "gpu/errc.hpp"
#include "gpu/host/isa.hpp"
#include "gpu/tensor.hpp"

namespace twill::gpu {

namespace detail {
struct op_backends;
}

struct device_config {
  std::string kind = "auto";     ///< auto | host | cuda; auto: a GPU if there is one
  std::int32_t threads = 0;      ///< host compute threads; 0: the cores this process may use
  std::int64_t memory_bytes = 0; ///< budget; 0: derived from what the machine has
  std::int32_t id = 0;           ///< which GPU, as CUDA counts them
  std::string isa = "auto";      ///< widest host kernels to use; tests name narrower ones
  /// The table of op implementations to use instead of the device's own; tests use it to run other
  /// implementations.
  const detail::op_backends* ops = nullptr;
};

struct device_info {
  std::string kind;              ///< host | cuda, or the kind of another chip
  std::string name;              ///< processor or board
  std::string backend;           ///< "Kokkos 3.4.1 OpenMP", ...
  std::string isa;               ///< widest instruction set in use: see host/isa.hpp
  std::int32_t threads = 0;      ///< host compute threads
  std::int64_t memory_bytes = 0; ///< the budget in force
  /// The part of a GPU's free memory that is kept out of the budget, for the memory that CUDA and
  /// libraries allocate by themselves; 0 where a budget is configured.
  std::int64_t spare_bytes = 0;
  bool multiplies_bf16 = false; ///< products of bf16 are faster than products of f32
  bool multiplies_f16 = false;  ///< products of f16 are faster than products of f32
  /// Activations that only linear() reads should be written in f16 or bf16 when linear() would
  /// round them to that type anyway: this saves time and changes no bit of the result.
  bool half_activations = false;
  /// The 16-bit KV type that suits attention best: bf16 where attention multiplies bf16 without
  /// widening it, else f16, which attention widens to f32 and which is more precise.
  dtype half_kv = dtype::f16;
};

namespace host {
class thread_pool;
}
namespace detail {
class host_slabs;
class space;
} // namespace detail

/// How an allocation will be written. On a host the hint decides which pages (small or huge) back
/// the allocation.
enum class page_hint {
  /// For memory that is written completely before settle(), as weights are: it gets small pages,
  /// whose contents settle() moves to huge pages.
  filled_at_once,
  /// For memory that is written in large parts over time and perhaps never completely, such as the
  /// KV arena and the buffers of disk reads: it gets huge pages from the start.
  filled_gradually,
  any
};

/// How often a device's thread has copied and waited since open(). A copy that blocks until it is
/// done counts as a copy and as a wait.
struct exchange_counts {
  std::int64_t uploads = 0, downloads = 0;
  std::int64_t waits = 0; ///< waits for all work launched on the device before
};

/// Thrown by upload(), download() and fence() where the device refuses.
class device_lost_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

class device {
public:
  static result<std::unique_ptr<device>> open(const device_config& config);
  /// Opens a device on a space (the memory and the kernels of a device) that the caller made and
  /// ignores config.kind; tests use it with spaces of their own.
  static result<std::unique_ptr<device>> open_on(std::unique_ptr<detail::space> where,
                                                 const device_config& config);
  /// The memory that the GPU chosen by `config` may take where no budget is configured; 0 where
  /// `config` chooses the host, or where the GPU cannot be opened. The function opens the GPU for a
  /// moment, on the calling thread.
  static std::int64_t chip_memory(const device_config& config);
  device(const device&) = delete;
  device& operator=(const device&) = delete;
  ~device();

  const device_info& info() const { return info_; }
  host::isa isa() const { return isa_; }
  /// The host's compute threads, for ops.
  host::thread_pool& pool() { return *pool_; }
  /// The place where the memory lies and kernels run, for ops.
  const detail::space& where() const { return *space_; }
  /// Whether device memory is ordinary memory of this process.
  bool memory_is_host() const;
  /// The backend's functions, for ops.
  const detail::op_backends& ops() const { return *ops_; }

  /// Zero-filled, 64-byte aligned. `label` names the allocation in the error.
  result<buffer> allocate(std::size_t bytes, const char* label, page_hint hint = page_hint::any);
  /// To be called once all memory with page_hint::filled_at_once has been written. On a host this
  /// call moves that memory to huge pages, in the background where the move takes longer than a
  /// second; addresses stay valid.
  void settle();
  /// Commits the pages of memory that is about to be used completely. A host commits them with all
  /// threads at once, instead of page by page while ops write. Call it on the device's thread.
  void touch(const buffer& memory);
  std::int64_t memory_used() const { return used_.load(std::memory_order_relaxed); }
  /// The largest value that memory_used() has had.
  std::int64_t memory_peak() const { return peak_.load(std::memory_order_relaxed); }

  /// Returns at least `bytes` of uninitialised workspace for one op, 64-byte aligned; the next call
  /// may return the same memory. The workspace only grows, so a steady stream of forward passes
  /// allocates nothing. The workspace counts as used memory, but the budget never refuses it, since
  /// it is small next to weights and KV.
  void* scratch(std::size_t bytes);
  /// Allocates `bytes` of workspace now, so that ops that need at most `bytes` allocate nothing
  /// while they run.
  result<nothing> reserve_scratch(std::size_t bytes);

  /// upload() and download() copy between host and device; the host memory may be reused on return.
  /// Both, and fence(), throw device_lost_error where the device refuses; the executor handles this
  /// exception like any other failure of a step.
  void upload(void* device_dst, const void* host_src, std::size_t bytes);
  void download(void* host_dst, const void* device_src, std::size_t bytes);

  /// enqueue_upload() and enqueue_download() enqueue a copy and do not wait; the copy runs in order
  /// with the launched ops. The host memory must be pinned (gpu/copy_stream.hpp). It must not
  /// change until the device has passed a marker (a point in its work, also in copy_stream.hpp)
  /// that was recorded after this call.
  void enqueue_upload(void* device_dst, const void* pinned_src, std::size_t bytes);
  void enqueue_download(void* pinned_dst, const void* device_src, std::size_t bytes);

  /// Waits for every op launched so far.
  void fence();
  /// Whether this process has lost a GPU. After that only the host device can be opened. Any
  /// thread.
  static bool chip_is_lost();
  /// To be called after a failure: whether this process can no longer use the GPU, even through a
  /// newly opened device. A GPU is lost when a kernel accesses an illegal address and when the
  /// board has a fault; then only another process can use the GPU again. A launch or a copy that
  /// was merely refused does not lose the GPU.
  bool is_lost();
  /// Bytes of GPU memory that were taken since open() by anything but this device's allocations: by
  /// CUDA, by libraries and by other processes. What CUDA takes at its start (its context and the
  /// kernels of this build) was taken before open() and is not included. 0 on a host.
  std::int64_t outside_bytes();
  const exchange_counts& exchanges() const { return exchanges_; }

private:
  friend class buffer;
  device();
  void release(void* data, std::size_t bytes) noexcept;
  void count(std::size_t bytes);
  bool grow_scratch(std::size_t bytes);

  device_info info_;
  host::isa isa_ = host::isa::plain;
  std::unique_ptr<host::thread_pool> pool_;
  std::unique_ptr<detail::space> space_;
  const detail::op_backends* ops_ = nullptr;
  std::unique_ptr<detail::host_slabs> slabs_;
  void* scratch_ = nullptr;
  std::size_t scratch_bytes_ = 0;
  exchange_counts exchanges_;
  std::atomic<std::int64_t> used_{0};
  std::atomic<std::int64_t> peak_{0}; ///< written by the device's thread only
};

} // namespace twill::gpu
