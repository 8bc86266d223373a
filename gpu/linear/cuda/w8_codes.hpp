// How the codes of 8-bit weights come from memory, as they lie: for gemm_w8.hpp and gemm_i8.hpp.
//
// A lane reads 16 bytes for a half of a step: four columns of four outputs of panel lane / 16. In
// groups of 32 and more columns the two halves are columns 0 to 3 and 4 to 7 of octet lane % 4, so
// that a lane has the same octet of the activations. In groups of 16 (Sixteens) they are columns 4
// * (lane % 4) to + 3 of either 16, so that one mma takes the columns of one group.
#pragma once

#include <cstdint>

#include "gpu/cuda/ptx.hpp"
#include "gpu/detail/packed_view.hpp"
#include "gpu/linear/cuda/gemm.hpp"

namespace twill::gpu::cuda {

template <class Ptx, bool Sixteens>
struct w8_codes {
  static constexpr int step_bytes = 1024; ///< of a warp
  /// Bytes between the codes of four columns and the next four, of a panel.
  static constexpr int line_bytes = static_cast<int>(detail::code_line_bytes);
  static constexpr int bytes_between = gemm_step / 4 * line_bytes;             ///< of steps
  static constexpr int bytes_to_half = Sixteens ? 4 * line_bytes : line_bytes; ///< of a step

  Ptx ptx;
  const unsigned char* codes; ///< the lane's, of the step that is copied next
  unsigned base;              ///< the lane's bytes of slot 0

  /// Of a pair of panels, from step `step` on. warp_base: the warp's first byte of shared memory.
  TWILL_KERNEL_MEMBER w8_codes(Ptx p, const detail::packed_view& w, int pair, int lane,
                               int warp_base, std::int64_t step)
      : ptx(p), base(static_cast<unsigned>(warp_base + lane * 16)) {
    codes = w.codes + panel_of(w, pair, lane) * w.codes_stride +
            lane % 4 * (Sixteens ? line_bytes : 2 * line_bytes) + lane / 4 % 4 * 16 +
            step * bytes_between;
  }

  /// output_of(lane, i, j): the output that rows lane / 4 and lane / 4 + 8 (j) of tile i are.
  TWILL_KERNEL_MEMBER static constexpr int output_of(int lane, int i, int j) {
    return lane / 4 * 4 + 2 * i + j;
  }

  TWILL_KERNEL_MEMBER void copy(int step, int slot) const {
    TWILL_UNROLL
    for (int k = 0; k < 2; ++k)
      ptx.copy_async(base + static_cast<unsigned>(slot * step_bytes + k * step_bytes / 2),
                     codes + step * bytes_between + k * bytes_to_half);
  }
  TWILL_KERNEL_MEMBER void skip(int steps) { codes += steps * bytes_between; }

  struct words {
    words4 half[2];
  };

  TWILL_KERNEL_MEMBER words read(int slot) const {
    words to;
    TWILL_UNROLL
    for (int k = 0; k < 2; ++k)
      to.half[k] = ptx.template load_shared<words4>(
          base + static_cast<unsigned>(slot * step_bytes + k * step_bytes / 2));
    return to;
  }
};

} // namespace twill::gpu::cuda
