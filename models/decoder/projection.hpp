// projection: one linear layer of a decoder, whose weights may come as several tensors.
//
// Tensors of one kind are packed as one matrix, which takes one pass over x. Tensors of several
// kinds are packed separately, and each writes its own columns of the output; the result is the
// same. Owned by the decoder's thread.
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

/// Reads a matrix whose shape has been checked against its role.
result<gpu::weight_source> checked_matrix(const checkpoint& weights, const matrix_role& role);

result<gpu::buffer> upload_values(gpu::device& dev, const std::vector<float>& values,
                                  const std::string& label);

/// Uploads a small tensor of `size` finite values. // (size) f32
result<gpu::buffer> upload_vector(gpu::device& dev, const checkpoint& weights,
                                  const std::string& name, std::int64_t size);

/// Where matrices are packed: on the device, where they stay, or on the host, to be moved later.
enum class packing : std::uint8_t { on_device, on_host };

gpu::result<gpu::packed_matrix> pack_at(packing where, gpu::device& dev,
                                        const gpu::weight_source& source, const char* label);

/// The matrices that a projection of these roles packs, one or several. Tensors that are missing or
/// cannot be read are left out, because loading reports what is wrong with them.
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

  /// Computes out = x * W^T + bias, or adds it to `out` with `accumulate`. `next` are the weights
  /// that are multiplied after these, or null.
  void apply(gpu::device& dev, gpu::tensor_ref x, gpu::tensor_ref out, bool accumulate,
             const gpu::packed_matrix* next = nullptr) const;

  /// Computes out = silu(gate) * up, where x * W^T + bias has the gate's columns before those of
  /// up. `gate_up` is memory for both.
  void apply_gated(gpu::device& dev, gpu::tensor_ref x, gpu::tensor_ref gate_up,
                   gpu::tensor_ref out, const gpu::packed_matrix* next) const;

  /// The packed matrices; their addresses are valid as long as this projection lives.
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

/// The compute type of a matrix of this kind. int8 is for grouped kinds; dense ones take f32
/// instead.
gpu::compute_type compute_for(gpu::weight_kind kind, gpu::compute_type wanted);

/// The compute type of queries, keys and values where the other projections are computed in
/// `wanted`: int8x2 for int8, because attention is more sensitive to the rounding of activations.
/// Decoders ask for the residual of keys and values only; queries are most of the rows and gain
/// little by it.
gpu::compute_type compute_for_qkv(gpu::compute_type wanted);

} // namespace twill::models
