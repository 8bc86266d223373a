// tensor_ref: a non-owning view of device memory; buffer: the owner of one allocation.
//
// A tensor_ref is contiguous except that its outermost rows may be strided (as in a column range of
// a fused projection). Shapes are given outermost first. A tensor_ref does not keep its memory
// alive: the buffer must outlive every kernel that uses the view. Neither type is synchronised.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "config/base/assert.hpp"

namespace twill::gpu {

enum class dtype : std::uint8_t { f32, f16, bf16, i32, u8, i8 };

constexpr std::size_t size_of(dtype t) {
  switch (t) {
  case dtype::f32:
  case dtype::i32:
    return 4;
  case dtype::f16:
  case dtype::bf16:
    return 2;
  case dtype::u8:
  case dtype::i8:
    break;
  }
  return 1;
}

const char* name_of(dtype t);

struct tensor_ref {
  void* data = nullptr;
  dtype type = dtype::f32;
  std::int32_t rank = 0;
  std::array<std::int64_t, 4> shape{}; ///< outermost first; entries past rank are 0
  std::int64_t row_stride = 0;         ///< elements between outermost rows

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  std::int64_t rows() const { return rank > 0 ? shape[0] : 0; }
  /// Elements of one outermost row.
  std::int64_t row_size() const {
    std::int64_t n = 1;
    for (std::int32_t i = 1; i < rank; ++i)
      n *= shape[static_cast<std::size_t>(i)];
    return n;
  }
  bool contiguous() const { return row_stride == row_size(); }
};

/// A matrix view; `row_stride` 0 means contiguous.  // (rows, cols)
inline tensor_ref view_2d(void* data, dtype type, std::int64_t rows, std::int64_t cols,
                          std::int64_t row_stride = 0) {
  return {data, type, 2, {rows, cols}, row_stride == 0 ? cols : row_stride};
}

class device;

/// Owns one allocation of a device's memory and returns it to the budget when destroyed.
/// Movable. Must not outlive its device.
class buffer {
public:
  buffer() = default;
  buffer(device& owner, void* data, std::size_t bytes)
      : owner_(&owner), data_(data), bytes_(bytes) {}
  buffer(buffer&& other) noexcept { swap(other); }
  buffer& operator=(buffer&& other) noexcept {
    buffer(std::move(other)).swap(*this);
    return *this;
  }
  ~buffer();

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

private:
  void swap(buffer& other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  device* owner_ = nullptr;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

} // namespace twill::gpu
