// projection: one linear layer of a decoder, whose weights may come as several tensors.
//
// Tensors of one kind are packed as one matrix (one pass over x); of mixed kinds apart, each
// writing its own columns of the output. Either way the result is the same. Owned by the decoder's
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/device.hpp"
#include "gpu/linear/linear.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/errc.hpp"
#include "models/spec.hpp"

namespace twill::models {

/// One tensor of a projection and the shape that the spec demands.
struct matrix_role {
  std::string name;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bias_rule bias = bias_rule::none;
};

/// The matrix, after its shape has been checked against its role.
result<gpu::weight_source> checked_matrix(const checkpoint& weights, const matrix_role& role);

result<gpu::buffer> upload_values(gpu::device& dev, const std::vector<float>& values,
                                  const std::string& label);

/// A small tensor of `size` finite values, uploaded. // (size) f32
result<gpu::buffer> upload_vector(gpu::device& dev, const checkpoint& weights,
                                  const std::string& name, std::int64_t size);

/// Where matrices are packed: on the device for good, or on the host, to be given a home later.
enum class packing : std::uint8_t { on_device, on_host };

gpu::result<gpu::packed_matrix> pack_at(packing where, gpu::device& dev,
                                        const gpu::weight_source& source, const char* label);

/// What a projection of these roles packs: one matrix, or several. Those that are missing or cannot
/// be read are left out: loading them says what is wrong.
std::vector<gpu::weight_source> packed_sources(const checkpoint& weights,
                                               const std::vector<matrix_role>& roles,
                                               gpu::compute_type compute);

class projection {
public:
  /// `roles` in output order, with biases as their rules say. int8x2 multiplies outputs
  /// before `residual_from` without a residual.
  static result<projection> load(gpu::device& dev, const checkpoint& weights,
                                 const std::vector<matrix_role>& roles, gpu::compute_type compute,
                                 packing where = packing::on_device,
                                 std::int64_t residual_from = 0);

  std::int64_t weight_bytes() const;

  /// out = x * W^T + bias, or out += with `accumulate`. `next`: the weights that come after, or
  /// null.
  void apply(gpu::device& dev, gpu::tensor_ref x, gpu::tensor_ref out, bool accumulate,
             const gpu::packed_matrix* next = nullptr) const;

  /// out = silu_mul() of the same, for a gate above what it multiplies. `gate_up`: room for both.
  void apply_gated(gpu::device& dev, gpu::tensor_ref x, gpu::tensor_ref gate_up,
                   gpu::tensor_ref out, const gpu::packed_matrix* next) const;

  /// The matrices themselves; they stay where they are for as long as this does.
  std::vector<gpu::packed_matrix*> matrices();

  const gpu::packed_matrix& first_weights() const { return parts_.front().weights; }

private:
  struct part {
    gpu::packed_matrix weights;
    gpu::buffer bias; ///< empty: none
    std::int64_t first_column = 0;
    gpu::compute_type compute = gpu::compute_type::f32;
  };
  static result<part> load_part(gpu::device& dev, const checkpoint& weights,
                                gpu::weight_source source, const std::vector<matrix_role>& roles,
                                gpu::compute_type compute, packing where);

  gpu::linear_args args_of(const part& p, gpu::tensor_ref x, gpu::tensor_ref out,
                           const gpu::packed_matrix* next) const;

  std::vector<part> parts_;
  std::int64_t residual_from_ = 0;
};

/// The compute type that a matrix of this kind runs in: int8 is for grouped kinds, dense ones take
/// f32 instead.
gpu::compute_type compute_for(gpu::weight_kind kind, gpu::compute_type wanted);

/// The compute type of queries, keys and values where the other projections are computed in
/// `wanted`: int8x2 for int8, because attention is more sensitive to the rounding of activations.
/// Decoders ask for the residual of keys and values only; queries are most of the rows and gain
/// little by it.
gpu::compute_type compute_for_qkv(gpu::compute_type wanted);

} // namespace twill::models
