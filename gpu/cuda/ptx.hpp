// ptx: the GPU instructions that kernel bodies (the code of kernels) use. A body uses no other GPU
// instructions.
//
// A body is a template over this policy: `template <class Ptx> void body(Ptx ptx, const args&)`.
// device_ptx implements the instructions on a GPU; the tests' emulator has the same members and
// runs a body's threads on the host. Shared memory is addressed by byte offset, so that the
// emulator can check every access. All 32 threads of a warp must call a member marked "Warp:"
// together, and all threads of a block must call barrier() together.
#pragma once

#include <cstdint>

#include "gpu/detail/half.hpp"

// Unrolls a loop `n` times. TWILL_UNROLL unrolls it completely.
#if defined(__CUDACC__)
#define TWILL_PRAGMA(text) _Pragma(#text)
#define TWILL_UNROLL_TIMES(n) TWILL_PRAGMA(unroll(n))
#else
#define TWILL_UNROLL_TIMES(n)
#endif

namespace twill::gpu::cuda {

struct alignas(8) words2 {
  std::uint32_t word[2];
};
/// 16 bytes, the widest load.
struct alignas(16) words4 {
  std::uint32_t word[4];
};
struct alignas(8) floats2 {
  float value[2];
};
struct alignas(16) floats4 {
  float value[4];
};

#ifdef __CUDACC__

extern __shared__ words4 shared_memory[];

struct device_ptx {
  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  __device__ static int block() { return static_cast<int>(blockIdx.x); }

  /// Loads from and stores to global memory. The address must be a multiple of T's size.
  template <class T>
  __device__ static T load(const T* from) {
    return *from;
  }
  template <class T>
  __device__ static void store(T* to, T value) {
    *to = value;
  }
  /// Loads 16 bytes that no thread of the grid writes, through the read-only path and without
  /// allocating in L1.
  __device__ static words4 load_constant(const words4* from) {
    words4 to;
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];\n"
        : "=r"(to.word[0]), "=r"(to.word[1]), "=r"(to.word[2]), "=r"(to.word[3])
        : "l"(from));
    return to;
  }
  /// Loads from L2 a value that another block has stored. The value is visible if the other block
  /// did its store, a fence() and an atomic_add() in this order (with or without barriers between
  /// them), and this block then did an atomic_add() of the same counter followed by a fence().
  __device__ static float load_l2(const float* from) { return __ldcg(from); }

  /// Memory fence for all blocks: this thread's accesses to global memory before the fence, and
  /// accesses of other threads that a barrier has ordered before it, come before this thread's
  /// later accesses.
  __device__ static void fence() { __threadfence(); }
  /// Adds to a counter in global memory and returns the counter's old value. During a launch the
  /// counter must be accessed by atomic_add() only. Without a fence() the call orders no other
  /// accesses.
  __device__ static std::int32_t atomic_add(std::int32_t* counter, std::int32_t value) {
    return atomicAdd(counter, value);
  }

  /// a + b, which the compiler never fuses with a product. The compiler may fuse a plain sum with a
  /// product into one multiply-add, which gives other bits. Use add() for sums that must have the
  /// same bits in two kernels.
  __device__ static float add(float a, float b) { return __fadd_rn(a, b); }

  /// A bitwise function of three inputs: bit i of the result is bit 4 * a_i + 2 * b_i + c_i of
  /// `Table`. `Table` is the function's value for a = 0xf0, b = 0xcc and c = 0xaa.
  template <std::uint32_t Table>
  __device__ static std::uint32_t lop3(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    std::uint32_t to;
    asm("lop3.b32 %0, %1, %2, %3, %4;\n" : "=r"(to) : "r"(a), "r"(b), "r"(c), "n"(Table));
    return to;
  }
  /// a - b for two f16 at once, rounded to nearest even.
  __device__ static std::uint32_t sub_f16x2(std::uint32_t a, std::uint32_t b) {
    std::uint32_t to;
    asm("sub.rn.f16x2 %0, %1, %2;\n" : "=r"(to) : "r"(a), "r"(b));
    return to;
  }

  /// Converts two f32 to f16, `low` in the lower half, rounded to nearest even.
  __device__ static std::uint32_t narrow_f16x2(float low, float high) {
    std::uint32_t to;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;\n" : "=r"(to) : "f"(high), "f"(low));
    return to;
  }
  /// Converts two f32 to bf16, `low` in the lower half, rounded to nearest even.
  __device__ static std::uint32_t narrow_bf16x2(float low, float high) {
    std::uint32_t to;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(to) : "f"(high), "f"(low));
    return to;
  }

  /// a * b + c for two bf16 at once, rounded once to nearest even.
  __device__ static std::uint32_t fma_bf16x2(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    std::uint32_t to;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;\n" : "=r"(to) : "r"(a), "r"(b), "r"(c));
    return to;
  }
  /// Byte i of the result is byte `selector >> 4 * i & 7` of the eight bytes of a and then b,
  /// lowest first. Bit 3 of each nibble of the selector is 0.
  __device__ static std::uint32_t permute(std::uint32_t a, std::uint32_t b,
                                          std::uint32_t selector) {
    return __byte_perm(a, b, selector);
  }

  /// Loads from and stores to shared memory. The offset must be a multiple of T's size.
  template <class T>
  __device__ static T load_shared(unsigned offset) {
    return *reinterpret_cast<const T*>(reinterpret_cast<const char*>(shared_memory) + offset);
  }
  template <class T>
  __device__ static void store_shared(unsigned offset, T value) {
    *reinterpret_cast<T*>(reinterpret_cast<char*>(shared_memory) + offset) = value;
  }

  /// Begins to copy 16 aligned bytes from global to shared memory. Earlier reads of the destination
  /// by this thread are safe: the hardware keeps them before the copy. Each commit() ends a group
  /// of copies. This thread sees the bytes after a wait<Left>() that comes when at most Left groups
  /// have been ended after the copy's own group; other threads see them after a barrier() that
  /// follows.
  __device__ static void copy_async(unsigned offset, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(address_of(offset)), "l"(from)
                 : "memory");
  }
  /// Begins to copy like copy_async(). If `zeros` is set, it begins to write 16 zero bytes instead:
  /// then nothing is read, and `from` may be any address of global memory.
  __device__ static void copy_async_or_zeros(unsigned offset, const void* from, bool zeros) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(address_of(offset)),
                 "l"(from), "r"(zeros ? 0 : 16)
                 : "memory");
  }
  __device__ static void commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
  /// Waits until at most `Left` committed groups of this thread's copies are still pending.
  template <int Left>
  __device__ static void wait() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(Left) : "memory");
  }

  __device__ static void barrier() { __syncthreads(); }
  /// Warp: synchronises the warp's threads; their earlier accesses to shared memory come before
  /// their later ones.
  __device__ static void sync_warp() { __syncwarp(); }

  /// Warp: returns the value of the thread whose number in the warp is this thread's number XOR
  /// `mask`.
  __device__ static float shuffle_xor(float value, int mask) {
    return __shfl_xor_sync(0xffffffffU, value, mask);
  }

  /// Warp: loads four 8 x 8 matrices of 16-bit elements (ldmatrix). Thread 8i + r passes the offset
  /// of row r of matrix i. Trans transposes each matrix.
  template <bool Trans>
  __device__ static void load_matrices(std::uint32_t (&to)[4], unsigned offset) {
    if constexpr (Trans)
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                   : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                   : "r"(address_of(offset))
                   : "memory");
    else
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                   : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                   : "r"(address_of(offset))
                   : "memory");
  }

  /// Warp: d += a * b for a (16, 16), b (16, 8) f16 and d (16, 8) f32.
  __device__ static void mma_f16(float (&d)[4], const std::uint32_t (&a)[4],
                                 const std::uint32_t (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
  /// Warp: d += a * b for a (16, 16), b (16, 8) bf16 and d (16, 8) f32.
  __device__ static void mma_bf16(float (&d)[4], const std::uint32_t (&a)[4],
                                  const std::uint32_t (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }

  /// Warp: the product of a (16, 32) s8 and b (32, 8) s8 plus c (16, 8) s32, modulo 2^32. A
  /// register holds four neighbouring elements along k.
  __device__ static void mma_s8(std::int32_t (&d)[4], const std::uint32_t (&a)[4],
                                const std::uint32_t (&b)[2], const std::int32_t (&c)[4]) {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};\n"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]),
                   "r"(c[1]), "r"(c[2]), "r"(c[3]));
  }

private:
  __device__ static unsigned address_of(unsigned offset) {
    return static_cast<unsigned>(__cvta_generic_to_shared(shared_memory)) + offset;
  }
};

#endif

} // namespace twill::gpu::cuda
