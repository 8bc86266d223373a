// Runs the body of a CUDA kernel on the host: the threads of a block are fibers, which meet at warp
// and block collectives.
//
// It is stricter than a GPU. Shared memory begins poisoned, and reading a byte that was never
// written is a fault; so are an access that is not aligned, that leaves its memory, or that races
// with another thread's since the last barrier. What copy_async() copies lands only at the wait()
// that guarantees it. Threads that meet in different collectives are a fault instead of a hang. A
// fault is thrown out of run_block(). Bank conflicts are counted. One thread of the host only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace twill::test {

class fault : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Global memory that a kernel may read, and write where `writable`.
struct global_range {
  const void* begin;
  std::size_t bytes;
  bool writable;
};

struct block_shape {
  int index = 0; ///< of the block in its grid
  int threads = 32;
  int shared_bytes = 0;
  std::vector<global_range> global;
};

struct block_report {
  /// Passes over the banks beyond the least that the warps' shared accesses could take.
  std::int64_t bank_conflicts = 0;
  std::int64_t shared_accesses = 0; ///< of whole warps
};

class emulated_block;

/// The policy that bodies are templates over, with the members of gpu::cuda::device_ptx.
class emulated_ptx {
public:
  int thread() const { return thread_; }
  int block() const;

  template <class T>
  T load(const T* from) const {
    check_global(from, sizeof(T), alignof(T), false);
    return *from;
  }
  template <class T>
  void store(T* to, T value) const {
    check_global(to, sizeof(T), alignof(T), true);
    *to = value;
  }
  template <class T>
  T load_shared(unsigned offset) const {
    T value;
    read_shared(offset, &value, sizeof(T));
    return value;
  }
  template <class T>
  void store_shared(unsigned offset, T value) const {
    write_shared(offset, &value, sizeof(T));
  }
  void copy_async(unsigned offset, const void* from) const;
  void commit() const;
  template <int Left>
  void wait() const {
    wait_for(Left);
  }
  void barrier() const;
  float shuffle_xor(float value, int mask) const;
  template <bool Trans>
  void load_matrices(std::uint32_t (&to)[4], unsigned offset) const {
    load_matrices(to, offset, Trans);
  }
  void mma_f16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) const;

private:
  friend class emulated_block;
  emulated_ptx(emulated_block& block, int thread) : block_(&block), thread_(thread) {}
  void check_global(const void* at, std::size_t bytes, std::size_t alignment, bool writes) const;
  void read_shared(unsigned offset, void* to, std::size_t bytes) const;
  void write_shared(unsigned offset, const void* from, std::size_t bytes) const;
  void wait_for(int left) const;
  void load_matrices(std::uint32_t (&to)[4], unsigned offset, bool transposed) const;

  emulated_block* block_;
  int thread_;
};

/// Runs body(ptx) on every thread of one block, to its end.
block_report run_block(const block_shape& shape, const std::function<void(emulated_ptx)>& body);

} // namespace twill::test
