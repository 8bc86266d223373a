// device: the place where kernels run, with a memory budget in bytes.
//
// Threads: open(), every op and the destructor belong to one thread, the one that launches kernels
// (the executor); Kokkos is initialised there. memory_used() and info() may be called by any
// thread. On a host build "device memory" is an arena of this process, committed page by page as it
// is touched, and capped by the budget. Ops are asynchronous where the backend is: call fence()
// before the host reads their results.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "gpu/errc.hpp"
#include "gpu/host/isa.hpp"
#include "gpu/tensor.hpp"

namespace twill::gpu {

struct device_config {
  std::string kind = "auto";     ///< auto | host | cuda
  std::int32_t threads = 0;      ///< host compute threads; 0: the cores this process may use
  std::int64_t memory_bytes = 0; ///< budget; 0: what the machine has
  std::string isa = "auto";      ///< widest host kernels to use; tests name narrower ones
};

struct device_info {
  std::string kind;              ///< host | cuda
  std::string name;              ///< processor or board
  std::string backend;           ///< "Kokkos 3.4.1 OpenMP", ...
  std::string isa;               ///< widest instruction set in use: see host/isa.hpp
  std::int32_t threads = 0;      ///< host compute threads
  std::int64_t memory_bytes = 0; ///< the budget in force
};

namespace host {
class thread_pool;
}
namespace detail {
class host_slabs;
}

/// How memory is written, which decides on a host's pages.
enum class filling {
  at_once, ///< whole, before settle(): weights
  /// In large pieces over time, perhaps never whole: the KV arena, and what disks are read into: a
  /// direct read into huge pages is about twice as fast.
  bit_by_bit,
  anyhow
};

class device {
public:
  static result<std::unique_ptr<device>> open(const device_config& config);
  device(const device&) = delete;
  device& operator=(const device&) = delete;
  ~device();

  const device_info& info() const { return info_; }
  host::isa isa() const { return isa_; }
  /// The host's compute threads, for ops.
  host::thread_pool& pool() { return *pool_; }

  /// Zero-filled, 64-byte aligned. `label` names the allocation in the error.
  result<buffer> allocate(std::size_t bytes, const char* label, filling how = filling::anyhow);
  /// What is to be filled at once is filled: on a host it may move to larger pages now, in the
  /// background. Addresses stay.
  void settle();
  /// Memory that is about to be used whole: a host backs it now, by all threads, instead of page by
  /// page while ops write. On the device's thread.
  void touch(const buffer& memory);
  std::int64_t memory_used() const { return used_.load(std::memory_order_relaxed); }
  /// The most that was in use at once.
  std::int64_t memory_peak() const { return peak_.load(std::memory_order_relaxed); }

  /// At least `bytes` of uninitialised workspace for one op, 64-byte aligned. It grows and stays,
  /// so a steady stream of steps allocates nothing; the next call may hand out the same memory.
  /// Small next to weights and KV: counted in memory_used(), not held to the budget.
  void* scratch(std::size_t bytes);
  /// So much of it now and not a page more, so that ops that need no more take none while they run.
  result<nothing> reserve_scratch(std::size_t bytes);

  /// Host -> device and back; blocking on return for the host side's memory.
  void upload(void* device_dst, const void* host_src, std::size_t bytes);
  void download(void* host_dst, const void* device_src, std::size_t bytes);

  /// Waits for every op launched so far.
  void fence();

private:
  friend class buffer;
  device();
  void release(void* data, std::size_t bytes) noexcept;
  void count(std::size_t bytes);
  bool grow_scratch(std::size_t bytes);

  device_info info_;
  host::isa isa_ = host::isa::plain;
  std::unique_ptr<host::thread_pool> pool_;
  std::unique_ptr<detail::host_slabs> slabs_;
  void* scratch_ = nullptr;
  std::size_t scratch_bytes_ = 0;
  std::atomic<std::int64_t> used_{0};
  std::atomic<std::int64_t> peak_{0}; ///< written by the device's thread alone
};

} // namespace twill::gpu
