#include "models/decoder/workspace.hpp"

#include <algorithm>
#include <utility>

#include "models/decoder/float_arrays.hpp"

namespace twill::models {

gpu::dtype linear_input_type(const gpu::device_info& device, gpu::compute_type compute) {
  if (!device.half_activations) return gpu::dtype::f32;
  if (compute == gpu::compute_type::f16) return gpu::dtype::f16;
  return compute == gpu::compute_type::bf16 ? gpu::dtype::bf16 : gpu::dtype::f32;
}

std::int64_t workspace::before_cols(const model_spec& spec, gpu::dtype input_type) {
  if (spec.gated_mlp) return 2 * std::int64_t{spec.mlp_size};
  return input_type == gpu::dtype::f32 ? 0 : spec.mlp_size;
}

result<workspace> workspace::create(gpu::device& dev, const model_spec& spec,
                                    gpu::compute_type compute, std::int64_t max_tokens,
                                    std::int64_t max_logit_rows) {
  const std::int64_t n = max_tokens, r = max_logit_rows, either = std::max(n, r);
  const bool projected = spec.embedding_size != spec.hidden_size;
  workspace w;
  w.input_type = linear_input_type(dev.info(), compute);
  const float_array arrays[] = {
      {&w.normed, either, spec.hidden_size, "workspace: normed states", w.input_type},
      {&w.qkv, n, spec.q_size() + 2 * spec.kv_size(), "workspace: queries, keys, values"},
      {&w.attended, n, spec.q_size(), "workspace: attention output", w.input_type},
      {&w.embedded, either, projected ? spec.embedding_size : 0, "workspace: embeddings"},
      {&w.before, either, before_cols(spec, w.input_type), "workspace: before activations"},
      {&w.activated, either, spec.mlp_size, "workspace: activations", w.input_type},
      {&w.last_attended, r, spec.q_size(), "workspace: last attention output", w.input_type},
      {&w.logits, r, spec.vocab_size, "workspace: logits"},
  };
  auto memory = allocate_arrays(dev, arrays);
  if (!memory.ok()) return memory.error();
  w.memory = std::move(memory).value();
  return w;
}

} // namespace twill::models
