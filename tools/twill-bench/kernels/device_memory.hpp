// device_memory: helpers that all cases share: values in device memory, and errors as exceptions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gpu/device.hpp"
#include "tools/twill-bench/kernels/cases.hpp"

namespace twill::bench {

inline bool selected(const kernel_selection& selection, const kernel_case& c) {
  return (c.op + " " + c.shape).find(selection.only) != std::string::npos;
}

/// The exception that value_of() throws when the device has too little memory.
class out_of_memory_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

template <class T, class E>
T value_of(twill::result<T, E> r) {
  if constexpr (std::is_same_v<E, gpu::errc>)
    if (!r.ok() && r.code() == gpu::errc::out_of_memory) throw out_of_memory_error(r.detail());
  if (!r.ok()) throw std::runtime_error(r.detail());
  return std::move(r.value());
}

/// Calls f(), which makes and measures cases. When the device has too little memory, a message on
/// standard error says which cases are left out.
template <class F>
void where_memory_suffices(const std::string& cases, const F& f) {
  try {
    f();
  } catch (const out_of_memory_error& e) {
    std::fprintf(stderr, "left out: %s: %s\n", cases.c_str(), e.what());
  }
}

template <class T>
gpu::buffer to_device(gpu::device& dev, const std::vector<T>& values) {
  gpu::buffer b = value_of(dev.allocate(values.size() * sizeof(T), "bench"));
  dev.upload(b.data(), values.data(), b.bytes());
  return b;
}

/// A buffer of `bytes` bytes in device memory, each of which has the value `value`.
inline gpu::buffer filled(gpu::device& dev, std::int64_t bytes, unsigned char value) {
  constexpr std::int64_t piece = std::int64_t{16} << 20;
  gpu::buffer b = value_of(
      dev.allocate(static_cast<std::size_t>(bytes), "bench", gpu::page_hint::filled_gradually));
  const std::vector<unsigned char> values(static_cast<std::size_t>(std::min(bytes, piece)), value);
  for (std::int64_t at = 0; at < bytes; at += piece)
    dev.upload(static_cast<unsigned char*>(b.data()) + at, values.data(),
               static_cast<std::size_t>(std::min(piece, bytes - at)));
  return b;
}

/// The number of buffers of `bytes` bytes that hold `selection.bytes_in_turn` together. Successive
/// runs of a case use them in turn. The number is limited, because a CUDA graph with one launch per
/// buffer must remain affordable.
inline std::int32_t turns_of(const kernel_selection& selection, double bytes) {
  constexpr double most = 2000;
  if (selection.small) return 2;
  return static_cast<std::int32_t>(
      std::clamp(static_cast<double>(selection.bytes_in_turn) / bytes + 1, 1.0, most));
}

/// Floats in device memory, which all have the same value at first.
class device_floats {
public:
  device_floats() = default;
  device_floats(gpu::device& dev, std::int64_t n, float value)
      : memory_(to_device(dev, std::vector<float>(static_cast<std::size_t>(n), value))) {}

  float* data() const { return static_cast<float*>(memory_.data()); }
  /// The matrix (rows, cols) that begins `skipped` floats after the start.
  gpu::tensor_ref matrix(std::int64_t rows, std::int64_t cols, std::int64_t skipped = 0) const {
    return gpu::view_2d(data() + skipped, gpu::dtype::f32, rows, cols);
  }

private:
  gpu::buffer memory_;
};

} // namespace twill::bench
