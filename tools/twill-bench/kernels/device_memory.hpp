// device_memory: what the cases share: values in device memory, and errors as exceptions.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gpu/device.hpp"
#include "tools/twill-bench/kernels/cases.hpp"

namespace twill::bench {

inline bool selected(const kernel_selection& selection, const kernel_case& c) {
  return (c.op + " " + c.shape).find(selection.only) != std::string::npos;
}

template <class T, class E>
T value_of(twill::result<T, E> r) {
  if (!r.ok()) throw std::runtime_error(r.detail());
  return std::move(r.value());
}

template <class T>
gpu::buffer to_device(gpu::device& dev, const std::vector<T>& values) {
  gpu::buffer b = value_of(dev.allocate(values.size() * sizeof(T), "bench"));
  dev.upload(b.data(), values.data(), b.bytes());
  return b;
}

/// Floats in device memory, all of one value at first.
class device_floats {
public:
  device_floats() = default;
  device_floats(gpu::device& dev, std::int64_t n, float value)
      : memory_(to_device(dev, std::vector<float>(static_cast<std::size_t>(n), value))) {}

  float* data() const { return static_cast<float*>(memory_.data()); }
  gpu::tensor_ref matrix(std::int64_t rows, std::int64_t cols) const {
    return gpu::view_2d(memory_.data(), gpu::dtype::f32, rows, cols);
  }

private:
  gpu::buffer memory_;
};

} // namespace twill::bench
