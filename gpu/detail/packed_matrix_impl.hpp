// The parts of a packed_matrix, for the ops that read it.
#pragma once

#include <cstdint>
#include <memory>

#include "gpu/detail/packed_view.hpp"
#include "gpu/linear/packed_matrix.hpp"

namespace twill::gpu {

struct packed_matrix::impl {
  /// One of the matrix's arrays: its codes, its scales or its column order. The bytes are owned by
  /// `device`, in device memory, or by `host` until drop_host_bytes(). Neither owns bytes where
  /// place() has made the matrix read bytes in device memory that the caller of place() owns.
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
