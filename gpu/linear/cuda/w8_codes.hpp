// w8_codes: loads the codes of 8-bit weights from memory without converting them, for gemm_w8.hpp
// and gemm_i8.hpp. packed_view.hpp explains row panels and octets (8 columns).
//
// In a step (32 columns) a lane (thread of a warp) reads 16 bytes for each of two halves: the codes
// of four columns for four outputs of panel lane / 16. With groups of 32 and more columns the two
// halves are columns 0 to 3 and 4 to 7 of octet lane % 4, so that the lane multiplies them by the
// same octet of the activations. With groups of 16 (Sixteens) the halves are the four columns from
// 4 * (lane % 4) on in the first and in the second 16 columns of the step, so that each mma
// multiplies the columns of one group.
#pragma once

#include <cstdint>

#include "gpu/cuda/ptx.hpp"
#include "gpu/detail/packed_view.hpp"
#include "gpu/linear/cuda/gemm.hpp"

namespace twill::gpu::cuda {

template <class Ptx, bool Sixteens>
struct w8_codes {
  static constexpr int step_bytes = 1024; ///< per warp
  /// Bytes from the codes of four columns of a panel to those of the next four columns.
  static constexpr int line_bytes = static_cast<int>(detail::code_line_bytes);
  static constexpr int bytes_between =
      gemm_step / 4 * line_bytes; ///< from one step's codes to the next step's
  static constexpr int bytes_to_half = Sixteens ? 4 * line_bytes : line_bytes; ///< of a step

  Ptx ptx;
  const unsigned char* codes; ///< source of the lane's next copy
  unsigned base;              ///< address of the lane's bytes in slot 0

  /// Prepares to read the codes of pair number `pair` of row panels (32 outputs) from step `step`
  /// (32 columns) on. `warp_base` is the offset of the warp's bytes in shared memory.
  TWILL_KERNEL_MEMBER w8_codes(Ptx p, const detail::packed_view& w, int pair, int lane,
                               int warp_base, std::int64_t step)
      : ptx(p), base(static_cast<unsigned>(warp_base + lane * 16)) {
    codes = w.codes + panel_of(w, pair, lane) * w.codes_stride +
            lane % 4 * (Sixteens ? line_bytes : 2 * line_bytes) + lane / 4 % 4 * 16 +
            step * bytes_between;
  }

  /// The output that is row lane / 4 (j = 0) or lane / 4 + 8 (j = 1) of tile i.
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
