#include "models/decoder/workspace.hpp"

#include <algorithm>
#include <utility>

#include "models/decoder/float_arrays.hpp"

namespace twill::models {

result<workspace> workspace::create(gpu::device& dev, const model_spec& spec,
                                    std::int64_t max_tokens, std::int64_t max_logit_rows) {
  const std::int64_t n = max_tokens, r = max_logit_rows, either = std::max(n, r);
  const bool projected = spec.embedding_size != spec.hidden_size;
  workspace w;
  const float_array arrays[] = {
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
  auto memory = allocate_arrays(dev, arrays);
  if (!memory.ok()) return memory.error();
  w.memory = std::move(memory).value();
  return w;
}

} // namespace twill::models
