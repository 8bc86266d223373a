#include "models/detail/activations.hpp"

#include <utility>

#include "models/detail/gpu_error.hpp"

namespace twill::models {

result<activations> activations::create(gpu::device& dev, const model_spec& spec,
                                        const step_limits& limits) {
  activations a;
  auto step = step_arrays::create(dev, limits);
  if (!step.ok()) return step.error();
  a.step = std::move(step).value();
  const std::int64_t n = limits.tokens, r = limits.logit_rows;
  struct part {
    float** at;
    std::int64_t rows;
    std::int64_t cols;
    const char* label;
  };
  const part parts[] = {
      {&a.hidden, n, spec.hidden_size, "activations: hidden states"},
      {&a.cos, n, spec.rope.rotary_dim / 2, "activations: cosines"},
      {&a.sin, n, spec.rope.rotary_dim / 2, "activations: sines"},
      {&a.last_hidden, r, spec.hidden_size, "activations: last hidden states"},
  };
  for (const part& p : parts) {
    auto memory = dev.allocate(static_cast<std::size_t>(p.rows * p.cols) * sizeof(float), p.label);
    if (!memory.ok()) return from_gpu(memory.error());
    *p.at = static_cast<float*>(memory.value().data());
    a.memory.push_back(std::move(memory).value());
  }
  return a;
}

} // namespace twill::models
