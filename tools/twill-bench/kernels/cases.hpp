// cases: what `twill-bench kernels` measures. One op at one shape, with what it must at least read
// and compute, so that its time can be held against the machine's limits.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gpu/device.hpp"
#include "gpu/linear/weight_kind.hpp"

namespace twill::bench {

struct kernel_case {
  std::string op;    ///< "linear u4/128 int8", "attention i8", ...
  std::string shape; ///< "1 x 4096 -> 14336"
  double bytes = 0;  ///< read or written at least, per run
  double operations = 0;
  gpu::compute_type compute = gpu::compute_type::f32; ///< whose peak bounds it
  std::function<void()> run;
  std::int32_t turn = 1; ///< runs after which the same memory is used again
};

/// Positions in a block of KV.
inline constexpr std::int32_t block_tokens = 16;

/// Cases that are chosen together.
enum class case_group : std::uint8_t {
  linear,    ///< products with every kind of weights
  layers,    ///< the products of one layer of each seed model, and all four of a layer as one case
  attention, ///< attention and the store of KV, in every KV type
  decode,    ///< decode attention of the seed models, of 1 and of 32 sequences
  rows       ///< norms, activations, choosing tokens
};
inline constexpr case_group case_groups[] = {case_group::linear, case_group::layers,
                                             case_group::attention, case_group::decode,
                                             case_group::rows};
const char* name_of(case_group group);

struct kernel_selection {
  std::vector<std::int64_t> rows; ///< rows of activations of products; empty: each group's own
  std::vector<case_group> groups; ///< empty: all
  std::string only;               ///< cases whose "op shape" contains this; empty: all
  bool small = false;             ///< toy shapes, to try the program itself
  /// Buffers are used in turn until they hold this much, so that no cache keeps one until its next
  /// use.
  std::int64_t bytes_in_turn = 0;
};

/// Makes the cases one after the other and hands each to `measure`; its memory is freed after.
/// Cases that the device's memory does not suffice for are named on standard error and left out.
/// Throws gpu::device_lost_error where the device fails.
void for_each_kernel_case(gpu::device& dev, const kernel_selection& selection,
                          const std::function<void(case_group, const kernel_case&)>& measure);

} // namespace twill::bench
