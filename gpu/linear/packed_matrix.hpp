// packed_matrix: weights in the layout that linear's kernels stream.
//
// A matrix is packed once at load: 16 output rows lie side by side, so that every output element is
// summed by one lane in one fixed order. Dense and grouped-quantised kinds are packed as they are,
// without dequantising. Packing runs on the device's thread and its host threads; a source that
// cannot be packed is bad_source, memory that is refused out_of_memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/device.hpp"
#include "gpu/linear/weight_kind.hpp"

namespace twill::gpu {

/// One row of a grouped matrix, filled by the source.
struct grouped_row {
  std::uint8_t* codes;            // (cols) one code per byte
  float* scales;                  // (cols / group)
  float* offsets;                 // (cols / group)
  std::uint16_t* steps = nullptr; // (cols / code_group), of grouped_u4_as_u8
  std::uint16_t* bases = nullptr; // (cols / code_group), of the same
};

/// Rows [first_row, first_row + n_rows) of a grouped matrix at once, filled by the source. Codes
/// come as words of 8 (u4) or 4 (u8) neighbouring columns, the first in the lowest bits; word r %
/// 16 of a line belongs to row r. Words of rows past the last may be left as they are.
struct grouped_rows {
  static constexpr std::int64_t most_rows = 128;
  std::int64_t first_row; ///< a multiple of 16
  std::int64_t n_rows;    ///< 1..most_rows
  std::uint32_t* words;   // (n_rows / 16 rounded up, words per row, 16), or null: not wanted
  float* scales;          // (n_rows, cols / group)
  float* offsets;         // (n_rows, cols / group)
};

/// A matrix before packing. The read functions are called from several threads at once, each row
/// once, in no promised order; they must not throw.
struct weight_source {
  weight_kind kind = weight_kind::f32;
  std::int64_t rows = 0;  ///< output features
  std::int64_t cols = 0;  ///< input features
  std::int32_t group = 0; ///< columns per scale (grouped kinds): multiple of 8, divides cols
  /// grouped_u4_as_u8: columns per step and base, a multiple of 32 that divides group; group is
  /// then 64..512.
  std::int32_t code_group = 0;
  /// f16: packed as bf16, for matrices of bf16 compute alone, which would round at every use.
  bool round_to_bf16 = false;
  /// grouped_u4 in groups of 32 whose offsets are no multiples of their scales: scales, and eighths
  /// of the offsets from the middle code on, are packed as 16-bit multiples of a row's unit, within
  /// 2^-16 of the row's largest. For matrices of int8 compute alone, which then applies both at
  /// once, in integers; elsewhere without effect.
  bool integer_terms = false;
  /// Dense kinds: address of row r in the element type of `kind`. // (cols)
  std::function<const void*(std::int64_t row)> dense_row;
  /// Grouped kinds: fills row r.
  std::function<void(std::int64_t row, const grouped_row& out)> grouped;
  /// Grouped kinds but grouped_u4_as_u8, optional: fills many rows at once, for codes that are
  /// stored by column. Used instead of `grouped` when set.
  std::function<void(const grouped_rows& out)> grouped_block;
  /// Column c multiplies x[(*column_order)[c]] (GPTQ's act-order); null: x[c].
  std::shared_ptr<const std::vector<std::int32_t>> column_order; // (cols)
};

/// Sources stacked along the output dimension (fused Q|K|V, gate|up). All must share kind, cols,
/// groups and column order; returns nothing when they do not (then pack them apart).
std::optional<weight_source> stack_rows(std::vector<weight_source> parts);

/// Where the parts of an image lie: codes, scales and the column order of some row blocks, each
/// part at a multiple of 64 bytes.
struct image_layout {
  std::int64_t code_block_bytes = 0;  ///< of one row block
  std::int64_t scale_block_bytes = 0; ///< of one row block; dense kinds: 0
  std::int64_t order_bytes = 0;       ///< the column order; most matrices: 0

  static constexpr std::int64_t aligned(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }
  std::int64_t scales_at(std::int64_t n_blocks) const {
    return aligned(n_blocks * code_block_bytes);
  }
  std::int64_t order_at(std::int64_t n_blocks) const {
    return scales_at(n_blocks) + aligned(n_blocks * scale_block_bytes);
  }
  std::int64_t bytes(std::int64_t n_blocks) const {
    return order_at(n_blocks) + aligned(order_bytes);
  }
};

/// A packed weight matrix. pack() puts it in device memory, where ops can read it. For weights that
/// move between tiers, pack_on_host() keeps it out of there: save_image() takes its bytes, and
/// place() lets it read an image that lies in device memory. Movable; must not outlive its device.
class packed_matrix {
public:
  packed_matrix();
  packed_matrix(packed_matrix&&) noexcept;
  packed_matrix& operator=(packed_matrix&&) noexcept;
  ~packed_matrix();

  std::int64_t rows() const;
  std::int64_t cols() const;
  std::int64_t bytes() const; ///< device memory held; 0 for one that is placed
  explicit operator bool() const { return impl_ != nullptr; }

  std::int64_t row_blocks() const; ///< of 16 rows
  image_layout layout() const;
  /// Copies the image of `n_blocks` row blocks from `first_block` on to host memory. Needs a matrix
  /// of pack_on_host() that has not been dropped.
  void save_image(std::int64_t first_block, std::int64_t n_blocks, void* host) const;
  /// Gives up the bytes of pack_on_host().
  void drop_host_bytes();
  /// A matrix of `rows` rows laid out like this one's, without bytes: to be placed. It has this
  /// one's column order, which is part of its image.
  packed_matrix like(std::int64_t rows) const;
  /// Reads the image of all its rows at `image`, 64-byte aligned device memory, until placed
  /// elsewhere; null: nowhere, and no op may use it.
  void place(const void* image);
  /// False for a matrix that waits to be placed.
  bool readable() const;

  struct impl;
  const impl& get() const { return *impl_; }

private:
  friend result<packed_matrix> pack(device&, const weight_source&, const char*);
  friend result<packed_matrix> pack_on_host(device&, const weight_source&, const char*);
  std::unique_ptr<impl> impl_;
};

/// Packs `source`; a value that is not finite is bad_source; group scales and offsets are kept
/// exactly (f16 where that is exact, else f32).
result<packed_matrix> pack(device& dev, const weight_source& source, const char* label);

/// The same into ordinary memory outside the device's budget, not readable until it is placed.
result<packed_matrix> pack_on_host(device& dev, const weight_source& source, const char* label);

/// Bytes that pack() would take, with scales and offsets in the form that fits some of the rows. 0
/// for what pack() refuses.
std::int64_t packed_bytes(const weight_source& source);

/// The layout of its image, by the same rule.
image_layout packed_layout(const weight_source& source);

} // namespace twill::gpu
