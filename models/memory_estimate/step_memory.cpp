#include "models/memory_estimate/memory_estimate.hpp"

#include <algorithm>

namespace twill::models {
namespace {

/// The floats of models/decoder/workspace.
std::int64_t workspace_floats(const model_spec& s, std::int64_t n, std::int64_t r) {
  const std::int64_t either = std::max(n, r);
  const std::int64_t embedded = s.embedding_size == s.hidden_size ? 0 : s.embedding_size;
  return either * (s.hidden_size + embedded + (s.gated_mlp ? 3 : 1) * std::int64_t{s.mlp_size}) +
         n * (2 * s.q_size() + 2 * s.kv_size()) + r * (s.q_size() + s.vocab_size);
}

} // namespace

std::int64_t estimate_activation_bytes(const model_spec& s, std::int64_t tokens,
                                       std::int64_t sequences, std::int64_t rows,
                                       std::int64_t max_blocks) {
  return 4 * (tokens * (s.hidden_size + s.rope.rotary_dim + 4) + rows * (s.hidden_size + 1) +
              sequences * (2 + max_blocks) + 1);
}

std::int64_t estimate_step_bytes(const model_spec& spec, const decoder_options& o) {
  return 4 * workspace_floats(spec, o.max_step_tokens, o.max_logit_rows) +
         estimate_activation_bytes(spec, o.max_step_tokens, o.max_sequences, o.max_logit_rows,
                                   decoder::block_table_width(spec, o));
}

} // namespace twill::models
