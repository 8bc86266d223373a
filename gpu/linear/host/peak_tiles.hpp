// Runs multiply-adds on registers alone, over a SIMD policy and with the instructions of the
// micro-kernels, to measure the rate of a core that never waits for memory.
#pragma once

#include "gpu/linear/host/tile_common.hpp"

namespace twill::gpu::host {
namespace {

template <class S, int R, class Round>
inline std::int64_t spin_rounds(std::int64_t rounds, float* sink, const Round& round) {
  typename S::f32 sum[R];
  for (int r = 0; r < R; ++r)
    sum[r] = S::zero();
  std::int64_t operations = 0;
  for (std::int64_t i = 0; i < rounds; ++i)
    operations += round(sum);
  for (int r = 1; r < R; ++r)
    sum[0] = S::add(sum[0], sum[r]);
  S::store(sink, sum[0]);
  return operations;
}

/// Repeats a block of independent multiply-adds on registers `rounds` times, to be timed by the
/// caller. Returns the number of operations; a multiply-add counts as two. 16 floats are written to
/// `sink`, so that the compiler cannot remove the work.
template <class S>
std::int64_t spin(compute_type type, std::int64_t rounds, float* sink) {
  constexpr int repeats = 16;
  // The number of independent sums. The 8 sums of the micro-kernels do not hide the latency of the
  // products, so more are used where registers allow it.
  constexpr int int8_rows = S::int8_gemm ? 12 : S::gemv_rows;
  alignas(64) std::int8_t bytes[int8_rows * 64] = {};
  alignas(64) std::uint16_t halves[64] = {};
  bytes[0] = static_cast<std::int8_t>(rounds);
  halves[0] = static_cast<std::uint16_t>(rounds);
  if (type == compute_type::int8) {
    constexpr int rows = int8_rows;
    typename S::codes codes[8];
    for (auto& c : codes)
      c = S::low4(S::load_codes(reinterpret_cast<const unsigned char*>(bytes)));
    return spin_rounds<S, 1>(rounds, sink, [&](typename S::f32(&sum)[1]) {
      typename S::i32 exact[rows];
      for (auto& e : exact)
        e = S::set1_i32(0);
      for (int s = 0; s < repeats; ++s) {
        // The products are the same each time; without this a compiler would compute them once.
        asm volatile("" : : "r"(bytes) : "memory");
        S::template dot<false, rows>(exact, codes, bytes, 64);
      }
      for (const auto& e : exact)
        sum[0] = S::add(sum[0], S::to_f32(e));
      return std::int64_t{repeats} * rows * 8 * 64 * 2;
    });
  }
  if (type == compute_type::bf16) {
    constexpr int rows = S::bf16_rows;
    const auto w = S::load_pairs(halves);
    return spin_rounds<S, rows>(rounds, sink, [&](typename S::f32(&sum)[rows]) {
      for (int s = 0; s < repeats; ++s)
        for (int r = 0; r < rows; ++r)
          sum[r] = S::dot_pairs(sum[r], w, halves + 2 * r);
      return std::int64_t{repeats} * rows * 32 * 2;
    });
  }
  constexpr int rows = S::bf16_rows; // as many sums as fit the registers
  const auto w = S::set1(static_cast<float>(rounds) * 1e-9F);
  return spin_rounds<S, rows>(rounds, sink, [&](typename S::f32(&sum)[rows]) {
    for (int s = 0; s < repeats; ++s)
      for (int r = 0; r < rows; ++r)
        sum[r] = S::fma(w, w, sum[r]);
    return std::int64_t{repeats} * rows * 16 * 2;
  });
}

} // namespace
} // namespace twill::gpu::host
