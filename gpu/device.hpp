// device: the place where kernels run, with a memory budget in bytes.
//
// Threads: open(), every op and the destructor belong to one thread, the one that launches kernels
// (the executor); Kokkos is initialised there. memory_used() and info() may be called by any
// thread. On a host build device memory is memory of this process, committed page by page as it is
// touched and capped by the budget. Ops are asynchronous where the backend is: call fence() before
// the host reads their results. A device that is not the host fails with device_lost_error.
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
  std::string kind = "auto";     ///< auto | host | a chip's, as cuda; auto: a chip if there is one
  std::int32_t threads = 0;      ///< host compute threads; 0: the cores this process may use
  std::int64_t memory_bytes = 0; ///< budget; 0: what the machine has
  std::int32_t id = 0;           ///< which GPU, as CUDA counts them
  std::string isa = "auto";      ///< widest host kernels to use; tests name narrower ones
  /// The table to run ops with instead of the device's own; tests run other forms with it.
  const detail::op_backends* ops = nullptr;
};

struct device_info {
  std::string kind;              ///< host | cuda, or that of another chip
  std::string name;              ///< processor or board
  std::string backend;           ///< "Kokkos 3.4.1 OpenMP", ...
  std::string isa;               ///< widest instruction set in use: see host/isa.hpp
  std::int32_t threads = 0;      ///< host compute threads
  std::int64_t memory_bytes = 0; ///< the budget in force
  /// Of a GPU's free memory, what is left beside the budget for what CUDA and libraries take by
  /// themselves; 0 where a budget is configured.
  std::int64_t spare_bytes = 0;
  bool multiplies_bf16 = false; ///< products of bf16 are faster than those of f32
  bool multiplies_f16 = false;  ///< products of f16 are faster than those of f32
  /// Activations that linear() alone reads should be written in f16 or bf16, where these are what
  /// it rounds them to: that saves time, and changes no bit.
  bool half_activations = false;
  /// The 16-bit type of KV that attention reads best: bf16 where it multiplies bf16 as it lies,
  /// else f16, which is more precise and is widened.
  dtype half_kv = dtype::f16;
};

namespace host {
class thread_pool;
}
namespace detail {
class host_slabs;
class space;
} // namespace detail

/// How an allocation will be written. On a host it decides which pages back it.
enum class page_hint {
  /// Written whole before settle(), as weights are: small pages, which settle() moves to huge ones.
  filled_at_once,
  /// Written in large parts over time, perhaps never whole, as the KV arena is and buffers that
  /// disks are read into: huge pages from the start.
  filled_gradually,
  any
};

/// How often a device's thread has copied and waited since open(). A copy that waits for its end
/// counts as both.
struct exchange_counts {
  std::int64_t uploads = 0, downloads = 0;
  std::int64_t waits = 0; ///< for all work of the device that was launched before
};

/// What upload(), download() and fence() throw where the device refuses.
class device_lost_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

class device {
public:
  static result<std::unique_ptr<device>> open(const device_config& config);
  /// The same on a space that the caller made, whatever config.kind says; tests make their own.
  static result<std::unique_ptr<device>> open_on(std::unique_ptr<detail::space> where,
                                                 const device_config& config);
  /// The memory that a device that is not the host may take where no budget is configured; 0 where
  /// it would be the host, or cannot be opened. It opens such a device for a moment, on the calling
  /// thread.
  static std::int64_t chip_memory(const device_config& config);
  device(const device&) = delete;
  device& operator=(const device&) = delete;
  ~device();

  const device_info& info() const { return info_; }
  host::isa isa() const { return isa_; }
  /// The host's compute threads, for ops.
  host::thread_pool& pool() { return *pool_; }
  /// Where the memory lies and kernels run, for ops.
  const detail::space& where() const { return *space_; }
  /// Whether device memory is this process's own.
  bool memory_is_host() const;
  /// The backend's functions, for ops.
  const detail::op_backends& ops() const { return *ops_; }

  /// Zero-filled, 64-byte aligned. `label` names the allocation in the error.
  result<buffer> allocate(std::size_t bytes, const char* label, page_hint hint = page_hint::any);
  /// Says that all memory with page_hint::filled_at_once has been written. On a host it now moves
  /// to huge pages, in the background where that takes longer than a second; addresses stay.
  void settle();
  /// Commits memory that is about to be used whole. A host does so with all threads, instead of
  /// page by page while ops write. On the device's thread.
  void touch(const buffer& memory);
  std::int64_t memory_used() const { return used_.load(std::memory_order_relaxed); }
  /// The largest value that memory_used() has had.
  std::int64_t memory_peak() const { return peak_.load(std::memory_order_relaxed); }

  /// At least `bytes` of uninitialised workspace for one op, 64-byte aligned; the next call may
  /// hand out the same memory. It only grows, so a steady stream of forward passes allocates
  /// nothing. It counts against the memory budget, which does not refuse it, since it is small next
  /// to weights and KV.
  void* scratch(std::size_t bytes);
  /// Allocates `bytes` of workspace now, so that ops that need no more allocate nothing while they
  /// run.
  result<nothing> reserve_scratch(std::size_t bytes);

  /// Copy between host and device; the host memory may be reused on return. These and fence() throw
  /// device_lost_error where the device refuses, which the executor answers with as with any other
  /// failure of a step.
  void upload(void* device_dst, const void* host_src, std::size_t bytes);
  void download(void* host_dst, const void* device_src, std::size_t bytes);

  /// The same without waiting, in the order of the ops that were launched. The host memory is
  /// pinned (gpu/copy_stream.hpp) and must stay as it is until a marker that is recorded afterwards
  /// has passed.
  void enqueue_upload(void* device_dst, const void* pinned_src, std::size_t bytes);
  void enqueue_download(void* pinned_dst, const void* device_src, std::size_t bytes);

  /// Waits for every op launched so far.
  void fence();
  /// Whether a device of this process was lost: then no device but the host's opens. Any thread.
  static bool chip_is_lost();
  /// After a failure: whether no device that this process opens can use the chip any more. A GPU
  /// is lost by a kernel that read or wrote where it must not, and by faults of the board; only
  /// another process can use it again. A launch or a copy that was refused loses nothing.
  bool is_lost();
  /// Bytes of a GPU that were taken since open() beside what was allocated here: by CUDA and
  /// libraries, and by other processes meanwhile. What CUDA takes when it starts, its context and
  /// the kernels of this build, was taken before. 0 on a host.
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
  std::atomic<std::int64_t> peak_{0}; ///< only the device's thread writes it
};

} // namespace twill::gpu
