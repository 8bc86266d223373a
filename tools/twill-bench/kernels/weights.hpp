// weights: made-up matrices of every kind of weights, in enough copies that no cache holds them
// all.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/device.hpp"
#include "gpu/linear/packed_matrix.hpp"

namespace twill::bench {

/// What the scales and offsets of a format look like to the packer.
enum class param_values {
  factored,     ///< offset = -8 * scale, as in Q4_0; in Q8_0 the factor differs
  float_scales, ///< as `factored`, with scales that are products of two floats: Q6_K
  zeros,        ///< f16 scales and integer zero points: GPTQ, AWQ
  halves,       ///< f16 scales and f16 offsets: Q4_1
  integers,     ///< `halves` stored as 16-bit integers, for a matrix that only int8 compute uses
  floats,       ///< scales and offsets that are products of two floats: Q4_K, Q5_K
};

struct weight_form {
  const char* name;
  gpu::weight_kind kind;
  std::int32_t group;
  param_values form;
  std::int32_t code_group = 0; ///< for the kind grouped_u4_as_u8
};

/// A matrix of pseudo-random weights. With constant weights a GPU would run at a higher clock than
/// with real ones.
gpu::weight_source make_source(const weight_form& form, std::int64_t rows, std::int64_t cols);

/// Copies of one packed matrix in device memory. It must not outlive its device.
class rotating_weights {
public:
  rotating_weights() = default;
  /// Makes at least one copy, and as many that all copies together have at least `least_bytes`.
  rotating_weights(gpu::device& dev, const gpu::weight_source& source, std::int64_t least_bytes);

  std::int64_t bytes() const { return bytes_; } ///< of one copy
  std::int32_t copies() const { return static_cast<std::int32_t>(matrices_.size()); }
  const gpu::packed_matrix& copy(std::int64_t i) const {
    return matrices_[static_cast<std::size_t>(i) % matrices_.size()];
  }

private:
  std::int64_t bytes_ = 0;
  std::vector<gpu::buffer> images_;
  std::vector<gpu::packed_matrix> matrices_;
};

} // namespace twill::bench
