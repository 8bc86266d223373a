#include "models/detail/workspace.hpp"

#include <algorithm>
#include <utility>

#include "models/detail/gpu_error.hpp"

namespace twill::models {

result<workspace> workspace::create(gpu::device& dev, const model_spec& spec,
                                    std::int64_t max_tokens, std::int64_t max_logit_rows) {
  const std::int64_t n = max_tokens, r = max_logit_rows, either = std::max(n, r);
  const bool projected = spec.embedding_size != spec.hidden_size;
  workspace w;
  struct part {
    float** at;
    std::int64_t rows;
    std::int64_t cols;
    const char* label;
  };
  const part parts[] = {
      {&w.normed, either, spec.hidden_size, "workspace: normed states"},
      {&w.qkv, n, spec.q_size() + 2 * spec.kv_size(), "workspace: queries, keys, values"},
      {&w.attended, n, spec.q_size(), "workspace: attention output"},
      {&w.embedded, either, projected ? spec.embedding_size : 0, "workspace: embeddings"},
      {&w.gate_up, spec.gated_mlp ? either : 0, 2 * std::int64_t{spec.mlp_size},
       "workspace: gate and up"},
      {&w.activated, either, spec.mlp_size, "workspace: activations"},
      {&w.last_attended, r, spec.q_size(), "workspace: last attention output"},
      {&w.logits, r, spec.vocab_size, "workspace: logits"},
  };
  for (const part& p : parts) {
    auto memory = dev.allocate(static_cast<std::size_t>(p.rows * p.cols) * sizeof(float), p.label);
    if (!memory.ok()) return from_gpu(memory.error());
    *p.at = static_cast<float*>(memory.value().data());
    w.memory.push_back(std::move(memory).value());
  }
  return w;
}

} // namespace twill::models
