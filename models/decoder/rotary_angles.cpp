#include "models/decoder/rotary_angles.hpp"

#include <cmath>

#include "config/base/assert.hpp"
#include "gpu/rows/rope.hpp"
#include "models/decoder/frequencies.hpp"

namespace twill::models {

void rotary_angles::set(gpu::device& dev, const rope_rule& rope, const float* inv_freq,
                        const step_batch& step, const gpu::ragged_batch& batch, gpu::tensor_ref cos,
                        gpu::tensor_ref sin) {
  if (rope.kind == gpu::rope_kind::none) return;
  gpu::rope_angles(dev, batch, inv_freq, rope.rotary_dim, cos, sin, rope.magnitude);
  if (rope.growth == rope_growth::none) return;

  TWILL_ASSERT(step.prompt_lengths.size() == step.kv_lengths.size(),
               "prompt_lengths must have one value per sequence");
  const auto half = static_cast<std::size_t>(rope.rotary_dim / 2);
  row_cos_.resize(half);
  row_sin_.resize(half);
  dev.fence();
  for (std::size_t s = 0; s < step.kv_lengths.size(); ++s) {
    const std::int32_t prompt = step.prompt_lengths[s];
    for (std::int32_t row = step.first_token[s]; row < step.first_token[s + 1]; ++row) {
      const std::int32_t position = step.positions[static_cast<std::size_t>(row)];
      if (!grows(rope, prompt, position)) continue;
      const auto freq = grown_frequencies(rope, prompt, position);
      for (std::size_t i = 0; i < half; ++i) {
        row_cos_[i] = static_cast<float>(std::cos(position * freq[i]) * rope.magnitude);
        row_sin_[i] = static_cast<float>(std::sin(position * freq[i]) * rope.magnitude);
      }
      dev.upload(cos.as<float>() + row * cos.row_stride, row_cos_.data(), half * sizeof(float));
      dev.upload(sin.as<float>() + row * sin.row_stride, row_sin_.data(), half * sizeof(float));
    }
  }
}

} // namespace twill::models
