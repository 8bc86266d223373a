#include "models/decoder/rotary_angles.hpp"

#include <cmath>
#include <utility>

#include "config/base/assert.hpp"
#include "gpu/rows/rope.hpp"
#include "models/decoder/frequencies.hpp"
#include "models/decoder/gpu_error.hpp"

namespace twill::models {

namespace {

constexpr std::int64_t chunk_rows = 64; ///< rows of a slot

} // namespace

result<nothing> rotary_angles::set(gpu::device& dev, const rope_rule& rope, const float* inv_freq,
                                   const step_batch& step, const gpu::ragged_batch& batch,
                                   gpu::tensor_ref cos, gpu::tensor_ref sin) {
  if (rope.kind == gpu::rope_kind::none) return nothing{};
  gpu::rope_angles(dev, batch, inv_freq, rope.rotary_dim, cos, sin, rope.magnitude);
  if (rope.growth == rope_growth::none) return nothing{};

  TWILL_ASSERT(step.prompt_lengths.size() == step.kv_lengths.size(),
               "prompt_lengths must have one value per sequence");
  for (std::size_t s = 0; s < step.kv_lengths.size(); ++s) {
    const std::int32_t prompt = step.prompt_lengths[s];
    const auto grown = [&](std::int32_t row) {
      return grows(rope, prompt, step.positions[static_cast<std::size_t>(row)]);
    };
    const std::int32_t end = step.first_token[s + 1];
    for (std::int32_t row = step.first_token[s]; row < end; ++row) {
      if (!grown(row)) continue;
      const std::int32_t first = row;
      while (row + 1 < end && row + 1 - first < chunk_rows && grown(row + 1))
        ++row;
      const auto positions =
          std::span(step.positions)
              .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(row + 1 - first));
      const gpu::tensor_ref to[] = {cos, sin};
      if (auto copied = copy_grown(dev, rope, prompt, positions, first, to); !copied.ok())
        return copied;
    }
  }
  return nothing{};
}

result<nothing> rotary_angles::copy_grown(gpu::device& dev, const rope_rule& rope,
                                          std::int32_t prompt,
                                          std::span<const std::int32_t> positions,
                                          std::int32_t first_row, const gpu::tensor_ref (&to)[2]) {
  const std::int64_t half = rope.rotary_dim / 2;
  if (!ring_) {
    auto made = gpu::pinned_ring::create(
        static_cast<std::size_t>(2 * chunk_rows * half) * sizeof(float), "rotary angles");
    if (!made.ok()) return from_gpu(made.error());
    ring_ = std::move(made).value();
  }
  auto slot = ring_->begin();
  if (!slot.ok()) return from_gpu(slot.error());
  auto* cos = reinterpret_cast<float*>(slot.value());
  float* const sin = cos + chunk_rows * half;
  for (std::size_t r = 0; r < positions.size(); ++r) {
    const auto freq = grown_frequencies(rope, prompt, positions[r]);
    for (std::size_t i = 0; i < freq.size(); ++i) {
      const std::size_t at = r * static_cast<std::size_t>(half) + i;
      cos[at] = static_cast<float>(std::cos(positions[r] * freq[i]) * rope.magnitude);
      sin[at] = static_cast<float>(std::sin(positions[r] * freq[i]) * rope.magnitude);
    }
  }
  const std::size_t bytes = positions.size() * static_cast<std::size_t>(half) * sizeof(float);
  for (const auto& [matrix, values] : {std::pair(&to[0], cos), std::pair(&to[1], sin)}) {
    TWILL_ASSERT(matrix->row_stride == half, "rows of angles must follow each other");
    dev.enqueue_upload(matrix->as<float>() + first_row * half, values, bytes);
  }
  ring_->end(dev);
  return nothing{};
}

} // namespace twill::models
