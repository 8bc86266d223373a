// product: one product of activations and weights, with several buffers that take turns.
#pragma once

#include <cstdint>
#include <string>

#include "tools/twill-bench/kernels/device_memory.hpp"
#include "tools/twill-bench/kernels/weights.hpp"

namespace twill::bench {

class product {
public:
  /// Makes a product for up to `most_rows` rows of activations. Successive runs use several copies
  /// of the weights in turn, so that no copy is still in a cache. On a GPU they also use several
  /// copies of the activations. On a host there is one copy, because in a model the op before a
  /// product leaves the activations in a cache.
  product(gpu::device& dev, const kernel_selection& selection, const gpu::weight_source& source,
          std::int64_t most_rows);

  void run(std::int64_t m, gpu::compute_type compute);

  /// A case with `m` rows of activations and without a name. It must not outlive this product.
  kernel_case measured(std::int64_t m, gpu::compute_type compute);

private:
  /// The type in which the op before the product writes the activations on this device.
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
