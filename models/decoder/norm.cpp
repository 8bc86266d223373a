#include "models/decoder/norm.hpp"

#include <utility>

#include "gpu/rows/norms.hpp"
#include "models/decoder/projection.hpp"

namespace twill::models {

result<norm_weights> norm_weights::load(gpu::device& dev, const checkpoint& weights,
                                        const std::string& name, std::int64_t size,
                                        norm_kind kind) {
  norm_weights norm;
  norm.kind_ = kind;
  auto weight = upload_vector(dev, weights, name, size);
  if (!weight.ok()) return weight.error();
  norm.weight_ = std::move(weight).value();
  if (kind == norm_kind::rms) return norm;
  auto bias = upload_vector(dev, weights, bias_of(name), size);
  if (!bias.ok()) return bias.error();
  norm.bias_ = std::move(bias).value();
  return norm;
}

void norm_weights::apply(gpu::device& dev, gpu::tensor_ref x, float epsilon,
                         gpu::tensor_ref out) const {
  const auto* weight = static_cast<const float*>(weight_.data());
  if (kind_ == norm_kind::rms)
    gpu::rms_norm(dev, x, weight, epsilon, out);
  else
    gpu::layer_norm(dev, x, weight, static_cast<const float*>(bias_.data()), epsilon, out);
}

} // namespace twill::models
