// fill: generates any rows of a random model's tensor (plan.hpp) from the seed, the tensor's name
// and the index of each value.
//
// Objects are immutable; any thread may call. tensor_filler generates the bytes that the tensor has
// in a file. For matrices that GPTQ or AWQ quantised, module_source gives the same numbers row by
// row, as gpu::weight_source needs them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gpu/linear/packed_matrix.hpp"
#include "models/synth/plan.hpp"

namespace twill::models::synth {

/// Generates rows of a dense or packed tensor.
class tensor_filler {
public:
  tensor_filler(const planned_tensor& tensor, std::uint64_t seed);
  /// Writes the bytes of rows [first, first + n). A one-dimensional tensor has one value per row.
  void fill(std::int64_t first, std::int64_t n, std::byte* out) const;

private:
  template <class T>
  void fill_normal(const std::vector<T>& table, std::int64_t first, std::int64_t n, T* out) const;

  planned_tensor tensor_;
  std::uint64_t key_;
  std::uint64_t seed_;
  std::vector<std::uint16_t> table16_; ///< normal quantiles in the tensor's 16-bit type
  std::vector<float> table32_;
};

/// The numbers of a packed module: codes, zero points, scales and the order of columns.
class module_source {
public:
  module_source(const packed_module& m, std::uint64_t seed);

  /// Returns the codes of consecutive columns of a row: 16 codes of 4 bits or 8 codes of 8 bits,
  /// with the first column in the lowest bits.
  std::uint64_t code_word(std::int64_t row, std::int64_t word) const;
  std::int64_t codes_per_word() const { return 64 / module_.bits; }
  std::uint32_t zero(std::int64_t group, std::int64_t row) const;
  std::uint16_t scale_bits(std::int64_t group, std::int64_t row) const;
  /// Returns the group of every column, as g_idx stores it. // (cols)
  std::vector<std::int32_t> group_index() const;
  /// Returns the columns sorted by group; null if they already are in that order. // (cols)
  std::shared_ptr<const std::vector<std::int32_t>> column_order() const;
  const packed_module& module() const { return module_; }

  // These fill rows of the tensors that store the module, as tensor_filler needs them.
  void fill_codes(std::int64_t first, std::int64_t n, std::uint32_t* out) const;
  void fill_zeros(std::int64_t first, std::int64_t n, std::uint32_t* out) const;
  void fill_scales(std::int64_t first, std::int64_t n, std::uint16_t* out) const;

private:
  void fill_gptq_codes(std::int64_t row, std::uint32_t* out) const;
  void fill_awq_codes(std::int64_t first, std::int64_t n, std::uint32_t* out) const;

  packed_module module_;
  std::uint64_t codes_key_;
  std::uint64_t zeros_key_;
  std::uint64_t scales_key_;
  std::uint64_t order_key_;
  std::int64_t words_per_row_;
  std::array<std::uint16_t, 256> scale_table_;
};

/// Nibble k of an AWQ word belongs to output awq_order[k] of the word's eight (AutoAWQ's GEMM
/// order).
inline constexpr std::array<int, 8> awq_order = {0, 2, 4, 6, 1, 3, 5, 7};

/// Returns all values of a small tensor of a float type, as f32.
std::vector<float> values_of(const planned_tensor& tensor, std::uint64_t seed);

/// Widens `n` values of the float type `type` to f32.
void widen(element type, const std::byte* values, std::int64_t n, float* out);

} // namespace twill::models::synth
