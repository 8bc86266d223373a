// The micro-kernels of linear layers, written once over a SIMD policy S (simd_*.hpp); each
// kernels_*.cpp makes a table of them.
#pragma once

#include "gpu/linear/host/float_tiles.hpp"
#include "gpu/linear/host/int8_quantise.hpp"
#include "gpu/linear/host/int8_tiles.hpp"
#include "gpu/linear/host/peak_tiles.hpp"

namespace twill::gpu::host {
namespace {

template <class S>
constexpr kernels make_kernels() {
  return {quantise<S>, round_bf16, tile_int8<S>, tile_bf16<S>, tile_f32<S>, spin<S>, S::int8_gemm};
}

} // namespace
} // namespace twill::gpu::host
