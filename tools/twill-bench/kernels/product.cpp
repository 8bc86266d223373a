#include "tools/twill-bench/kernels/product.hpp"

#include <algorithm>

#include "gpu/linear/linear.hpp"

namespace twill::bench {

product::product(gpu::device& dev, const kernel_selection& selection,
                 const gpu::weight_source& source, std::int64_t most_rows)
    : dev_(dev), cols_(source.cols), rows_(source.rows), most_rows_(most_rows),
      weights_(dev, source, selection.small ? 0 : selection.bytes_in_turn) {
  const double bytes = 4.0 * static_cast<double>(most_rows * (cols_ + rows_));
  if (!dev.memory_is_host())
    activation_copies_ = std::min(weights_.copies(), turns_of(selection, bytes));
  x_ = device_floats(dev, activation_copies_ * most_rows * cols_, 0.5F);
  out_ = device_floats(dev, activation_copies_ * most_rows * rows_, 0);
}

void product::run(std::int64_t m, gpu::compute_type compute) {
  const std::int64_t at = turn_ % activation_copies_ * most_rows_;
  gpu::linear_args args;
  args.x = x_.matrix(m, cols_, at * cols_);
  // The values do not matter; rows of a 2-byte type use half of the buffer.
  args.x.type = type_of_x(compute);
  args.out = out_.matrix(m, rows_, at * rows_);
  args.weights = &weights_.copy(turn_++);
  args.compute = compute;
  gpu::linear(dev_, args);
}

gpu::dtype product::type_of_x(gpu::compute_type compute) const {
  if (!dev_.info().half_activations) return gpu::dtype::f32;
  if (compute == gpu::compute_type::f16) return gpu::dtype::f16;
  return compute == gpu::compute_type::bf16 ? gpu::dtype::bf16 : gpu::dtype::f32;
}

kernel_case product::measured(std::int64_t m, gpu::compute_type compute) {
  kernel_case c;
  c.shape = product_shape_text(m, cols_, rows_);
  c.bytes = static_cast<double>(
      weights_.bytes() +
      m * (cols_ * static_cast<std::int64_t>(gpu::size_of(type_of_x(compute))) + rows_ * 4));
  c.operations = 2.0 * static_cast<double>(m * cols_ * rows_);
  c.compute = compute;
  c.turn = weights_.copies();
  c.run = [this, m, compute] { run(m, compute); };
  return c;
}

std::string product_shape_text(std::int64_t m, std::int64_t cols, std::int64_t rows) {
  return std::to_string(m) + " x " + std::to_string(cols) + " -> " + std::to_string(rows);
}

} // namespace twill::bench
