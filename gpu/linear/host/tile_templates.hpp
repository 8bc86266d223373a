// The micro-kernels of linear layers, templates over a SIMD policy S (simd_*.hpp). Each
// kernels_*.cpp instantiates a table of them.
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

/// A table of only the kernels for int8 compute, which use products of bytes; the others are null.
/// quantise() belongs to them because it writes the activations that tile_int8() reads.
template <class S>
constexpr kernels make_int8_kernels() {
  return {
      .quantise = quantise<S>, .tile_int8 = tile_int8<S>, .spin = spin<S>, .gates = S::int8_gemm};
}

/// A table of only the kernels that use products of bf16; the others are null.
template <class S>
constexpr kernels make_bf16_kernels() {
  return {.tile_bf16 = tile_bf16<S>, .spin = spin<S>};
}

} // namespace
} // namespace twill::gpu::host
