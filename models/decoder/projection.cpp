#include "models/decoder/projection.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gpu/rows/elementwise.hpp"
#include "models/decoder/gpu_error.hpp"
#include "models/decoder/tensor_roles.hpp"
#include "models/spec.hpp"

namespace twill::models {
namespace {

/// Reads a vector of the checkpoint and checks its size and that its values are finite.
result<std::vector<float>> checked_vector(const checkpoint& weights, const std::string& name,
                                          std::int64_t size) {
  if (auto fits = check_shape(weights, name, {size}); !fits.ok()) return fits.error();
  auto values = weights.vector(name);
  if (!values.ok()) return values;
  for (std::size_t i = 0; i < values.value().size(); ++i)
    if (!std::isfinite(values.value()[i]))
      return failure{errc::bad_tensor, "tensor `" + name + "` must be finite, got " +
                                           std::to_string(values.value()[i]) + " at " +
                                           std::to_string(i)};
  return values;
}

bool has_bias(const checkpoint& weights, const matrix_role& role) {
  return role.bias == bias_rule::required ||
         (role.bias == bias_rule::if_present && weights.find(bias_of(role.name)) != nullptr);
}

} // namespace

result<gpu::buffer> upload_values(gpu::device& dev, const std::vector<float>& values,
                                  const std::string& label) {
  auto memory = dev.allocate(values.size() * sizeof(float), label.c_str());
  if (!memory.ok()) return from_gpu(memory.error());
  dev.upload(memory.value().data(), values.data(), values.size() * sizeof(float));
  return std::move(memory).value();
}

result<gpu::weight_source> checked_matrix(const checkpoint& weights, const matrix_role& role) {
  if (auto fits = check_shape(weights, role.name, {role.rows, role.cols}); !fits.ok())
    return fits.error();
  weights.read_ahead(role.name);
  return weights.matrix(role.name);
}

result<gpu::buffer> upload_vector(gpu::device& dev, const checkpoint& weights,
                                  const std::string& name, std::int64_t size) {
  auto values = checked_vector(weights, name, size);
  if (!values.ok()) return values.error();
  return upload_values(dev, values.value(), name);
}

gpu::compute_type compute_for(gpu::weight_kind kind, gpu::compute_type wanted) {
  const bool floats = wanted == gpu::compute_type::f32 || wanted == gpu::compute_type::f16 ||
                      wanted == gpu::compute_type::bf16;
  if (!gpu::is_grouped(kind) && !floats) return gpu::compute_type::f32;
  return wanted == gpu::compute_type::w8a8 ? gpu::compute_type::int8 : wanted;
}

gpu::compute_type compute_for_qkv(gpu::compute_type wanted) {
  return wanted == gpu::compute_type::int8 ? gpu::compute_type::int8x2 : wanted;
}

gpu::result<gpu::packed_matrix> pack_at(packing where, gpu::device& dev,
                                        const gpu::weight_source& source, const char* label) {
  return where == packing::on_device ? gpu::pack(dev, source, label)
                                     : gpu::pack_on_host(dev, source, label);
}

std::vector<gpu::weight_source> packed_sources(const checkpoint& weights,
                                               const std::vector<matrix_role>& roles,
                                               gpu::compute_type compute) {
  std::vector<gpu::weight_source> sources;
  for (const matrix_role& role : roles) {
    if (weights.find(role.name) == nullptr) continue;
    auto source = weights.matrix(role.name);
    if (source.ok()) sources.push_back(std::move(source).value());
  }
  if (auto fused = gpu::stack_rows(sources)) sources = {std::move(*fused)};
  for (gpu::weight_source& s : sources)
    s.only_compute = compute_for(s.kind, compute);
  return sources;
}

result<projection::part> projection::load_part(gpu::device& dev, const checkpoint& weights,
                                               gpu::weight_source source,
                                               const std::vector<matrix_role>& roles,
                                               gpu::compute_type compute, packing where) {
  part p;
  p.compute = compute_for(source.kind, compute);
  source.only_compute = p.compute;
  auto packed = pack_at(where, dev, source, roles.front().name.c_str());
  if (!packed.ok()) return from_gpu(packed.error());
  p.weights = std::move(packed).value();
  for (const matrix_role& role : roles)
    weights.release(role.name);
  if (std::none_of(roles.begin(), roles.end(),
                   [&](const matrix_role& role) { return has_bias(weights, role); }))
    return p;

  std::vector<float> bias;
  for (const matrix_role& role : roles) {
    const std::string name = bias_of(role.name);
    if (!has_bias(weights, role)) {
      bias.insert(bias.end(), static_cast<std::size_t>(role.rows), 0.0f);
      continue;
    }
    auto values = checked_vector(weights, name, role.rows);
    if (!values.ok()) return values.error();
    bias.insert(bias.end(), values.value().begin(), values.value().end());
  }
  auto uploaded = upload_values(dev, bias, bias_of(roles.front().name));
  if (!uploaded.ok()) return uploaded.error();
  p.bias = std::move(uploaded).value();
  return p;
}

result<projection> projection::load(gpu::device& dev, const checkpoint& weights,
                                    const std::vector<matrix_role>& roles,
                                    gpu::compute_type compute, packing where,
                                    std::int64_t residual_from) {
  std::vector<gpu::weight_source> sources;
  for (const matrix_role& role : roles) {
    auto source = checked_matrix(weights, role);
    if (!source.ok()) return source.error();
    sources.push_back(std::move(source).value());
  }
  projection loaded;
  loaded.residual_from_ = residual_from;
  if (const auto fused = gpu::stack_rows(sources)) {
    auto p = load_part(dev, weights, *fused, roles, compute, where);
    if (!p.ok()) {
      // Packing each of the stacked tensors alone finds the tensor that cannot be packed.
      for (std::size_t i = 0; i < roles.size(); ++i)
        if (auto alone = pack_at(where, dev, sources[i], roles[i].name.c_str()); !alone.ok())
          return from_gpu(alone.error());
      return p.error();
    }
    loaded.parts_.push_back(std::move(p).value());
    return loaded;
  }
  std::int64_t column = 0;
  for (std::size_t i = 0; i < roles.size(); ++i) {
    auto p = load_part(dev, weights, sources[i], {roles[i]}, compute, where);
    if (!p.ok()) return p.error();
    p.value().first_column = column;
    column += roles[i].rows;
    loaded.parts_.push_back(std::move(p).value());
  }
  return loaded;
}

std::vector<gpu::packed_matrix*> projection::matrices() {
  std::vector<gpu::packed_matrix*> all;
  for (part& p : parts_)
    all.push_back(&p.weights);
  return all;
}

std::int64_t projection::weight_bytes() const {
  std::int64_t total = 0;
  for (const part& p : parts_)
    total += p.weights.bytes();
  return total;
}

gpu::linear_args projection::args_of(const part& p, gpu::tensor_ref x, gpu::tensor_ref out,
                                     const gpu::packed_matrix* next) const {
  gpu::linear_args args;
  args.x = x;
  args.weights = &p.weights;
  args.bias = static_cast<const float*>(p.bias.data());
  args.out = gpu::view_2d(out.as<float>() + p.first_column, gpu::dtype::f32, out.rows(),
                          p.weights.rows(), out.row_stride);
  args.compute = p.compute;
  args.residual_from = std::max<std::int64_t>(0, residual_from_ - p.first_column);
  args.next = &p == &parts_.back() ? next : &(&p + 1)->weights;
  return args;
}

void projection::apply(gpu::device& dev, gpu::tensor_ref x, gpu::tensor_ref out, bool accumulate,
                       const gpu::packed_matrix* next) const {
  for (const part& p : parts_) {
    gpu::linear_args args = args_of(p, x, out, next);
    args.accumulate = accumulate;
    gpu::linear(dev, args);
  }
}

void projection::apply_gated(gpu::device& dev, gpu::tensor_ref x, gpu::tensor_ref gate_up,
                             gpu::tensor_ref out, const gpu::packed_matrix* next) const {
  const part& first = parts_.front();
  if (parts_.size() == 1 && first.bias.data() == nullptr)
    return gpu::linear_silu_mul(dev, args_of(first, x, gate_up, next), out);
  apply(dev, x, gate_up, false, next);
  gpu::silu_mul(dev, gate_up, out);
}

} // namespace twill::models
