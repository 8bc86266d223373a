// Runs the body of a CUDA kernel on the host. The threads of a block are fibers, which synchronise
// at warp and block collectives; the blocks of a grid synchronise through global memory.
//
// The emulator is stricter than a GPU. Shared memory begins poisoned, and reading a byte that was
// never written is a fault. An access is also a fault if it is not aligned, if it is outside its
// memory, or if it races with another thread's access since the last barrier, or since the last
// sync_warp() of the warp that has both threads. Data copied by copy_async() arrives only at the
// wait() that guarantees it. Threads that wait in different collectives are a fault instead of a
// hang. Faults are thrown out of run_block() and run_grid(). Bank conflicts are counted. The
// emulator may be used by one host thread only.
//
// Blocks take turns in an order that comes from grid_shape::seed: a turn ends when every thread of
// the block has reached a collective, a fence or an atomic. Blocks that wait for another block in a
// loop cannot be emulated. Two accesses of one byte of writable global memory, at least one of them
// a write, are a fault unless one is ordered before the other:
// - by the order of one thread's instructions, or by barriers of one block;
// - between blocks, by this chain: store, fence, atomic_add on a counter, atomic_add on that
//   counter by a thread of the other block, fence, access. The steps of a block may be taken by
//   different threads with a barrier between them.
// An atomic_add() also races with each plain access of its counter, whatever the order.
//
// With `order_records`, the emulator records the order of sums. An mma then does not multiply: it
// computes each element of d from the previous bits of the element and the bits of its 16 pairs of
// factors, so that d is a fingerprint of all mma of this sum, in their sequence. A product of zero
// is the same whatever its factors are, and sixteen products of zero leave d as it is. The
// fingerprints are floats of mixed signs and magnitudes. The kernel's own f32 operations apply to
// them as usual, and a different order of these operations shows by its rounding. So if two kernels
// get inputs without two equal products in one sum, and sum in the same order, every output that
// they store has the same bits. If the order differs, the bits of one output differ with high
// probability, but not always: compare a hundred outputs or more. The order within an mma is not
// recorded. Sums of integers are exact in any order, so mma_s8() multiplies as usual.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu/cuda/ptx.hpp"

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
  bool order_records = false; ///< see "Records of order" above
};

struct grid_shape {
  int blocks = 1;
  std::uint32_t seed = 0; ///< of the order in which blocks take turns
  block_shape block;      ///< of each; its index is not used
};

struct block_report {
  /// Bank conflicts: the passes over the banks of shared memory beyond the fewest possible, for the
  /// warps' accesses and ldmatrix. Passes of copy_async() are not counted.
  std::int64_t bank_conflicts = 0;
  std::int64_t shared_accesses = 0; ///< one for each access of a whole warp
};

class emulated_block;

/// The policy (template parameter) of kernel bodies, with the members of gpu::cuda::device_ptx.
class emulated_ptx {
public:
  int thread() const { return thread_; }
  int block() const;

  template <class T>
  T load(const T* from) const {
    access_global(from, sizeof(T), alignof(T), false);
    return *from;
  }
  template <class T>
  void store(T* to, T value) const {
    access_global(to, sizeof(T), alignof(T), true);
    *to = value;
  }
  gpu::cuda::words4 load_constant(const gpu::cuda::words4* from) const;
  float load_l2(const float* from) const { return load(from); }
  void fence() const;
  std::int32_t atomic_add(std::int32_t* counter, std::int32_t value) const;
  float add(float a, float b) const; // out of line, so that no compiler makes a multiply-add of it
  template <std::uint32_t Table>
  std::uint32_t lop3(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    return lop3(a, b, c, Table);
  }
  std::uint32_t sub_f16x2(std::uint32_t a, std::uint32_t b) const;
  std::uint32_t narrow_f16x2(float low, float high) const;
  std::uint32_t narrow_bf16x2(float low, float high) const;
  std::uint32_t fma_bf16x2(std::uint32_t a, std::uint32_t b, std::uint32_t c) const;
  std::uint32_t permute(std::uint32_t a, std::uint32_t b, std::uint32_t selector) const;
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
  void sync_warp() const;
  float shuffle_xor(float value, int mask) const;
  template <bool Trans>
  void load_matrices(std::uint32_t (&to)[4], unsigned offset) const {
    load_matrices(to, offset, Trans);
  }
  void mma_f16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) const;
  void mma_bf16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) const;
  void mma_s8(std::int32_t (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
              const std::int32_t (&c)[4]) const;
  void copy_async_or_zeros(unsigned offset, const void* from, bool zeros) const;

private:
  friend class emulated_block;
  using fragments_a = std::uint32_t[4];
  using fragments_b = std::uint32_t[2];
  void mma(float (&d)[4], const fragments_a& a, const fragments_b& b, bool bf16) const;
  emulated_ptx(emulated_block& block, int thread) : block_(&block), thread_(thread) {}
  void access_global(const void* at, std::size_t bytes, std::size_t alignment, bool writes) const;
  std::uint32_t lop3(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t table) const;
  void read_shared(unsigned offset, void* to, std::size_t bytes) const;
  void write_shared(unsigned offset, const void* from, std::size_t bytes) const;
  void wait_for(int left) const;
  void load_matrices(std::uint32_t (&to)[4], unsigned offset, bool transposed) const;

  emulated_block* block_;
  int thread_;
};

/// Runs body(ptx) on every thread of one block, to its end.
block_report run_block(const block_shape& shape, const std::function<void(emulated_ptx)>& body);

/// Runs body(ptx) on every thread of all blocks, to their ends. The report is the sum of theirs.
block_report run_grid(const grid_shape& shape, const std::function<void(emulated_ptx)>& body);

} // namespace twill::test
