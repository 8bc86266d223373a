// product: one product of activations and weights, whose buffers are used in turn.
#pragma once

#include <cstdint>
#include <string>

#include "tools/twill-bench/kernels/device_memory.hpp"
#include "tools/twill-bench/kernels/weights.hpp"

namespace twill::bench {

class product {
public:
  /// For up to `most_rows` rows of activations. Activations rotate as the weights do, but on a
  /// host, where the op before leaves them in a cache.
  product(gpu::device& dev, const kernel_selection& selection, const gpu::weight_source& source,
          std::int64_t most_rows);

  void run(std::int64_t m, gpu::compute_type compute);

  /// A case of `m` rows without a name. It must not outlive the product.
  kernel_case measured(std::int64_t m, gpu::compute_type compute);

private:
  /// What the op before writes on this device.
  gpu::dtype type_of_x(gpu::compute_type compute) const;

  gpu::device& dev_;
  std::int64_t cols_, rows_, most_rows_;
  rotating_weights weights_;
  std::int64_t activation_copies_ = 1;
  device_floats x_, out_;
  std::int64_t turn_ = 0;
};

/// "2 x 4096 -> 14336"
std::string product_shape_text(std::int64_t m, std::int64_t cols, std::int64_t rows);

} // namespace twill::bench
