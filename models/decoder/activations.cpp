#include "models/decoder/activations.hpp"

#include <utility>

#include "models/decoder/float_arrays.hpp"

namespace twill::models {

result<activations> activations::create(gpu::device& dev, const model_spec& spec,
                                        const step_limits& limits, bool own_hidden) {
  activations a;
  auto step = step_arrays::create(dev, limits);
  if (!step.ok()) return step.error();
  a.step = std::move(step).value();
  const std::int64_t n = limits.tokens, r = limits.logit_rows;
  const float_array arrays[] = {
      {&a.hidden, own_hidden ? n : 0, spec.hidden_size, "activations: hidden states"},
      {&a.cos, n, spec.rope.rotary_dim / 2, "activations: cosines"},
      {&a.sin, n, spec.rope.rotary_dim / 2, "activations: sines"},
      {&a.last_hidden, r, spec.hidden_size, "activations: last hidden states"},
  };
  auto memory = allocate_arrays(dev, arrays);
  if (!memory.ok()) return memory.error();
  a.memory = std::move(memory).value();
  return a;
}

} // namespace twill::models
