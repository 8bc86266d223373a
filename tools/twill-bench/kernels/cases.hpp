// cases: the cases that `twill-bench kernels` measures. A case is one op at one shape, with the
// least number of bytes and operations that it needs, so that its time can be compared with the
// machine's limits.
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
  double bytes = 0;  ///< least number of bytes read or written per run
  double operations = 0;
  gpu::compute_type compute = gpu::compute_type::f32; ///< type whose peak rate limits the case
  std::function<void()> run;
  std::int32_t turn = 1; ///< number of runs after which the same memory is used again
};

/// Positions in one KV block.
inline constexpr std::int32_t block_tokens = 16;

/// Groups of cases that the user can choose.
enum class case_group : std::uint8_t {
  linear,    ///< products with every kind of weights
  layers,    ///< the products of one layer of each seed model, one by one, and all four as one case
  attention, ///< attention and the store of KV, in every KV type
  decode,    ///< decode attention of the seed models, with 1 and with 32 sequences
  rows       ///< norms, activations, choice of tokens
};
inline constexpr case_group case_groups[] = {case_group::linear, case_group::layers,
                                             case_group::attention, case_group::decode,
                                             case_group::rows};
const char* name_of(case_group group);

struct kernel_selection {
  /// Rows of activations in products; empty: each group has its own list.
  std::vector<std::int64_t> rows;
  std::vector<case_group> groups; ///< empty: all
  std::string only;               ///< cases whose "op shape" contains this; empty: all
  bool small = false;             ///< toy shapes, to test the program itself
  /// Successive runs of a case use different buffers in turn. There are so many buffers that they
  /// hold at least this many bytes together, so no buffer is still in a cache when it is used
  /// again.
  std::int64_t bytes_in_turn = 0;
};

/// Makes the cases one after the other and passes each to `measure`; the memory of a case is freed
/// afterwards. A case that needs more memory than the device has is named on standard error and
/// left out. Throws gpu::device_lost_error when the device fails.
void for_each_kernel_case(gpu::device& dev, const kernel_selection& selection,
                          const std::function<void(case_group, const kernel_case&)>& measure);

} // namespace twill::bench
