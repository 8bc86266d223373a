// linear_kernels: the names of the kernels that linear() launches, and the layers of known models
// (seed_layers.hpp) at whose shapes these kernels are checked and timed. Only the device's thread
// may call the functions.
#pragma once

#include <string>
#include <vector>

#include "gpu/linear/linear.hpp"
#include "tools/gpu-kernels/family.hpp"
#include "tools/twill-bench/kernels/seed_layers.hpp"

namespace twill::gpu_kernels {

/// Whether the device's own table has a kernel for these weights.
bool has_kernel(const gpu::device& dev, const gpu::packed_matrix& weights,
                gpu::compute_type compute);
/// Whether options::only chooses it.
bool chosen(const options& given, const std::string& kernel, const std::string& shape);
/// "linear grouped_u4 bf16"
std::string kernel_name(const char* weights, gpu::compute_type compute);

/// The layers that are checked and timed.
std::vector<bench::seed_layer> layers_of(const options& given);
/// The compute type that `model.compute` = auto chooses for a layer's weights on a GPU. It depends
/// on the 16-bit type that a checkpoint's configuration states: AWQ and GPTQ checkpoints state f16,
/// GGUF files none. For a layer with `int8` set, which is computed as with `model.compute` = w8a8
/// (8-bit weights and int8 activations), the result is int8.
gpu::compute_type compute_of(const gpu::device& dev, const bench::seed_layer& seed);
/// Random weights of a product.
gpu::weight_source source_of(const bench::seed_layer& seed, const bench::product_shape& s);
std::string shape_of(const bench::seed_layer& seed, const bench::product_shape& s);
/// Whether the device has a kernel for a product. Decided from a few of the matrix's rows.
bool takes(gpu::device& dev, const bench::seed_layer& seed, const bench::product_shape& s,
           gpu::compute_type compute);

void check_linear(gpu::device& dev, const options& given, results& out);   ///< linear_checks.cpp
void measure_linear(gpu::device& dev, const options& given, results& out); ///< linear_times.cpp

} // namespace twill::gpu_kernels
