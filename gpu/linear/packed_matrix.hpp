// packed_matrix: weights in the layout that linear's kernels stream.
//
// A matrix is packed once, when the model is loaded: 16 output rows are interleaved, so that one
// SIMD lane sums every output element in one fixed order. Dense and grouped-quantised kinds are
// packed without dequantising. pack() must be called on the device's thread and uses the device's
// host threads. Errors: a source that cannot be packed is bad_source; a refused allocation is
// out_of_memory.
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
  std::uint8_t* codes;              // (cols) one code per byte
  float* scales;                    // (cols / group)
  float* offsets;                   // (cols / group)
  std::uint16_t* factors = nullptr; // (cols / code_group), grouped_u4_as_u8 only
  std::uint16_t* bases = nullptr;   // (cols / code_group), grouped_u4_as_u8 only
};

/// Rows [first_row, first_row + n_rows) of a grouped matrix, filled by the source in one call.
/// Codes are 32-bit words of 8 (u4) or 4 (u8) neighbouring columns, the first column in the lowest
/// bits. The words of the 16 rows of a panel are interleaved: of each 16 neighbouring words, word r
/// % 16 belongs to row r. Words that belong to no row (past the last row) need not be written.
struct grouped_rows {
  static constexpr std::int64_t most_rows = 128;
  std::int64_t first_row; ///< a multiple of 16
  std::int64_t n_rows;    ///< 1..most_rows
  std::uint32_t* words;   // (row panels, words per row, 16); null where no codes are wanted
  float* scales;          // (n_rows, cols / group)
  float* offsets;         // (n_rows, cols / group)
};

/// A matrix before packing. Several threads call its functions at the same time, in any order, and
/// each row is read once; the functions must not throw.
struct weight_source {
  weight_kind kind = weight_kind::f32;
  std::int64_t rows = 0;  ///< output features
  std::int64_t cols = 0;  ///< input features
  std::int32_t group = 0; ///< columns per scale (grouped kinds): multiple of 8, divides cols
  /// grouped_u4_as_u8: the number of columns that share a factor and a base (weight_kind.hpp), a
  /// multiple of 32 that divides group; group must then be 64 to 512.
  std::int32_t code_group = 0;
  /// Set where the packed matrix will be multiplied in this compute type only and its rows are not
  /// read in any other way. Packing may then round values once that this type would round at every
  /// use, or store scales and offsets in a way that the type's kernels read faster; see
  /// packed_form.cpp. If it is not set, every value is kept exactly.
  std::optional<compute_type> only_compute;
  /// Dense kinds: address of row r in the element type of `kind`. // (cols)
  std::function<const void*(std::int64_t row)> dense_row;
  /// Grouped kinds: fills row r.
  std::function<void(std::int64_t row, const grouped_row& out)> grouped;
  /// Optional, for grouped kinds other than grouped_u4_as_u8: fills the rows of several row panels
  /// (16 rows each) in one call. Where this function is set, packing calls it instead of `grouped`.
  /// It is meant for sources whose codes are stored by column.
  std::function<void(const grouped_rows& out)> grouped_panels;
  /// Column c multiplies x[(*column_order)[c]] (GPTQ's act-order); null: x[c].
  std::shared_ptr<const std::vector<std::int32_t>> column_order; // (cols)
};

/// Stacks sources along the output dimension (fused Q|K|V, gate|up). All sources must share kind,
/// columns, groups and column order; otherwise the function returns nothing and the sources must be
/// packed separately.
std::optional<weight_source> stack_rows(std::vector<weight_source> parts);

/// The layout of an image, the bytes in which a packed matrix moves between memory tiers. It holds
/// the codes, the scales and the column order of some row panels (16 rows each), one after the
/// other. Each part begins at a multiple of 64 bytes.
struct image_layout {
  std::int64_t code_panel_bytes = 0;  ///< codes of one row panel
  std::int64_t scale_panel_bytes = 0; ///< scales and offsets of one row panel; 0 for dense kinds
  std::int64_t order_bytes = 0;       ///< the column order; 0 for most matrices

  static constexpr std::int64_t aligned(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }
  std::int64_t scales_at(std::int64_t n_panels) const {
    return aligned(n_panels * code_panel_bytes);
  }
  std::int64_t order_at(std::int64_t n_panels) const {
    return scales_at(n_panels) + aligned(n_panels * scale_panel_bytes);
  }
  std::int64_t bytes(std::int64_t n_panels) const {
    return order_at(n_panels) + aligned(order_bytes);
  }
};

/// A packed weight matrix. pack() puts the matrix in device memory, where ops can read it. Weights
/// that move between memory tiers are packed by pack_on_host() into host memory instead:
/// save_image() copies their bytes out as an image, and place() makes the matrix read an image that
/// lies in device memory. Movable; must not outlive its device.
class packed_matrix {
public:
  packed_matrix();
  packed_matrix(packed_matrix&&) noexcept;
  packed_matrix& operator=(packed_matrix&&) noexcept;
  ~packed_matrix();

  std::int64_t rows() const;
  std::int64_t cols() const;
  std::int64_t bytes() const; ///< device memory that the matrix owns; 0 for a placed matrix
  explicit operator bool() const { return impl_ != nullptr; }

  std::int64_t row_panels() const; ///< 16 rows each, the last one padded
  image_layout layout() const;
  /// Copies the packed bytes (the image) of `n_panels` row panels of 16 rows each, from
  /// `first_panel` on, to host memory. The matrix must come from pack_on_host(), and
  /// drop_host_bytes() must not have been called.
  void save_image(std::int64_t first_panel, std::int64_t n_panels, void* host) const;
  /// Frees the bytes that pack_on_host() wrote.
  void drop_host_bytes();
  /// Returns a matrix of `rows` rows that has the layout of this matrix but no bytes, for place().
  /// The column order is part of the image that place() sets.
  packed_matrix like(std::int64_t rows) const;
  /// Makes the matrix read the packed bytes of all its rows at `image`, which is 64-byte aligned
  /// device memory. Null detaches the matrix from such bytes; no op may use the matrix then.
  void place(const void* image);
  /// False for a matrix that has no image in device memory, so that no op may use it.
  bool readable() const;

  struct impl;
  const impl& get() const { return *impl_; }

private:
  friend result<packed_matrix> pack(device&, const weight_source&, const char*);
  friend result<packed_matrix> pack_on_host(device&, const weight_source&, const char*);
  std::unique_ptr<impl> impl_;
};

/// Packs `source` into device memory. The error is bad_source for a value that is not finite.
result<packed_matrix> pack(device& dev, const weight_source& source, const char* label);

/// Packs `source` into ordinary host memory outside the device's budget. The matrix cannot be read
/// until its bytes have been copied to the device and place() has been called.
result<packed_matrix> pack_on_host(device& dev, const weight_source& source, const char* label);

/// The device memory in bytes that pack() would take, estimated from the scales and offsets of a
/// few rows; 0 for a source that pack() refuses.
std::int64_t packed_bytes(const weight_source& source);

/// The layout of the image that pack() would make, estimated from a few rows as in packed_bytes().
image_layout packed_layout(const weight_source& source);

} // namespace twill::gpu
