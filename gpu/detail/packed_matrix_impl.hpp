// The parts of a packed_matrix, for the ops that read it.
#pragma once

#include <cstdint>
#include <memory>

#include "gpu/detail/packed_view.hpp"
#include "gpu/linear/packed_matrix.hpp"

namespace twill::gpu {

struct packed_matrix::impl {
  /// One part's bytes: in device memory, on the host waiting to be moved, or elsewhere altogether.
  struct part {
    std::int64_t bytes = 0;
    buffer device;
    std::unique_ptr<unsigned char[]> host;
  };
  detail::packed_view view; ///< its addresses are null while the matrix is not readable
  part codes, scales;
  part order;                             ///< the source's column order // (cols) int32
  const std::int32_t* order_at = nullptr; ///< device memory

  const std::int32_t* column_order() const { return order_at; }
};

} // namespace twill::gpu
