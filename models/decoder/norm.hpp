// norm_weights: the weights of one RMS or layer norm. Owned by the decoder's thread.
#pragma once

#include <cstdint>
#include <string>

#include "gpu/device.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/errc.hpp"
#include "models/spec.hpp"

namespace twill::models {

class norm_weights {
public:
  /// `name` is the tensor name of the weight. The bias of a layer norm has the name bias_of(name).
  static result<norm_weights> load(gpu::device& dev, const checkpoint& weights,
                                   const std::string& name, std::int64_t size, norm_kind kind);

  explicit operator bool() const { return weight_.data() != nullptr; }

  /// out = norm(x); x may equal out. // (m, size)
  void apply(gpu::device& dev, gpu::tensor_ref x, float epsilon, gpu::tensor_ref out) const;

private:
  norm_kind kind_ = norm_kind::rms;
  gpu::buffer weight_; // (size) f32
  gpu::buffer bias_;   // (size) f32, layer norms
};

} // namespace twill::models
