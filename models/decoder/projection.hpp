// projection: one linear layer of a decoder. A checkpoint may store its weights as several tensors.
//
// If all tensors have one element kind, they are packed as one matrix, and the input x is read
// once. Tensors of different kinds are packed as separate matrices, each of which writes its own
// columns of the output. The output is equal in both cases. Owned by the decoder's thread.
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

/// One tensor of a projection, with the shape that the spec requires.
struct matrix_role {
  std::string name;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bias_rule bias = bias_rule::none;
};

/// Checks the matrix's shape against its role and returns its weights.
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

/// The matrices, one or several, that projection::load() packs for the tensors `roles`. Tensors
/// that are missing or cannot be read are left out here; projection::load reports what is wrong
/// with them.
std::vector<gpu::weight_source> packed_sources(const checkpoint& weights,
                                               const std::vector<matrix_role>& roles,
                                               gpu::compute_type compute);

class projection {
public:
  /// `roles` lists the tensors of this layer in the order of their output columns;
  /// matrix_role::bias says whether a tensor has a bias. Compute type int8x2 represents x by two
  /// int8 digits, of which the second is the rounding error (residual) of the first. Hosts compute
  /// the output columns before `residual_from` without the second digit.
  static result<projection> load(gpu::device& dev, const checkpoint& weights,
                                 const std::vector<matrix_role>& roles, gpu::compute_type compute,
                                 packing where = packing::on_device,
                                 std::int64_t residual_from = 0);

  std::int64_t weight_bytes() const;

  /// Computes out = x * W^T + bias; with `accumulate` adds the result to `out` instead. `next` is
  /// the matrix that will be multiplied after this projection, as a hint for prefetching; it may be
  /// null.
  void apply(gpu::device& dev, gpu::tensor_ref x, gpu::tensor_ref out, bool accumulate,
             const gpu::packed_matrix* next = nullptr) const;

  /// Computes out = silu(gate) * up. The columns of x * W^T + bias are first those of `gate`, then
  /// those of `up`; `gate_up` is the memory that holds both.
  void apply_gated(gpu::device& dev, gpu::tensor_ref x, gpu::tensor_ref gate_up,
                   gpu::tensor_ref out, const gpu::packed_matrix* next) const;

  /// The packed matrices. Their addresses stay valid until this projection is destroyed.
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

/// The compute type of a matrix of this weight kind. int8 applies only to grouped (quantised)
/// kinds; where int8 is wanted, dense kinds use f32.
gpu::compute_type compute_for(gpu::weight_kind kind, gpu::compute_type wanted);

/// The compute type of the projection to queries, keys and values when the other projections are
/// computed in `wanted`. It is int8x2 where `wanted` is int8, because attention is more sensitive
/// to the rounding of activations. int8x2 adds a second int8 digit, the residual, to each
/// activation. On a host, decoders use the residual only for the outputs that are keys and values:
/// queries are most of the outputs and gain little from it.
gpu::compute_type compute_for_qkv(gpu::compute_type wanted);

} // namespace twill::models
