#include "tools/gpu-kernels/linear_kernels.hpp"

#include <iterator>

#include "gpu/detail/linear_backend.hpp"
#include "gpu/detail/op_backends.hpp"
#include "tools/twill-bench/kernels/device_memory.hpp"
#include "tools/twill-bench/kernels/weights.hpp"

namespace twill::gpu_kernels {

using gpu::compute_type;
using gpu::weight_kind;

bool has_kernel(const gpu::device& dev, const gpu::packed_matrix& weights, compute_type compute) {
  return dev.ops().get<gpu::detail::linear_backend>().supports(weights.get().view, compute);
}

bool chosen(const options& given, const std::string& kernel, const std::string& shape) {
  return (kernel + ", " + shape).find(given.only) != std::string::npos;
}

std::string kernel_name(const char* weights, compute_type compute) {
  return std::string("linear ") + weights + " " + gpu::name_of(compute);
}

compute_type compute_of(const gpu::device& dev, const bench::seed_layer& seed) {
  if (seed.int8) return compute_type::int8;
  const bool f16 = dev.info().multiplies_f16 && seed.kind != weight_kind::bf16 &&
                   seed.kind != weight_kind::grouped_u8;
  return f16 ? compute_type::f16 : compute_type::bf16;
}

std::vector<bench::seed_layer> layers_of(const options& given) {
  if (given.small)
    return {std::begin(bench::small_seed_layers), std::end(bench::small_seed_layers)};
  std::vector<bench::seed_layer> layers(std::begin(bench::seed_layers),
                                        std::end(bench::seed_layers));
  layers.insert(layers.end(), std::begin(bench::gguf_layers), std::end(bench::gguf_layers));
  layers.push_back(bench::w8a8_layer);
  return layers;
}

gpu::weight_source source_of(const bench::seed_layer& seed, const bench::product_shape& s) {
  const auto values = seed.kind != weight_kind::grouped_u8 ? bench::param_values::zeros
                      : seed.float_scales                  ? bench::param_values::float_scales
                                                           : bench::param_values::factored;
  return bench::make_source({"", seed.kind, seed.group, values}, s.rows, s.cols);
}

std::string shape_of(const bench::seed_layer& seed, const bench::product_shape& s) {
  return std::string(seed.name) + " " + s.name;
}

bool takes(gpu::device& dev, const bench::seed_layer& seed, const bench::product_shape& s,
           compute_type compute) {
  const gpu::weight_source some = source_of(seed, {"", s.cols, 16});
  return has_kernel(dev, bench::value_of(gpu::pack(dev, some, "weights")), compute);
}

family linear_family() {
  return {"linear", check_linear, measure_linear};
}

} // namespace twill::gpu_kernels
