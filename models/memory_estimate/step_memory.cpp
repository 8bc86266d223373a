#include "models/memory_estimate/memory_estimate.hpp"

#include <algorithm>

#include "models/decoder/step_arrays.hpp"
#include "models/decoder/workspace.hpp"

namespace twill::models {
namespace {

/// Returns the bytes that models/decoder/workspace allocates for `n` tokens and `r` rows of logits.
std::int64_t workspace_bytes(const model_spec& s, gpu::dtype input_type, std::int64_t n,
                             std::int64_t r) {
  const std::int64_t either = std::max(n, r);
  const std::int64_t embedded = s.embedding_size == s.hidden_size ? 0 : s.embedding_size;
  const std::int64_t inputs = either * (s.hidden_size + s.mlp_size) + (n + r) * s.q_size();
  const std::int64_t floats = either * (embedded + workspace::before_cols(s, input_type)) +
                              n * (s.q_size() + 2 * s.kv_size()) + r * s.vocab_size;
  return inputs * static_cast<std::int64_t>(gpu::size_of(input_type)) + 4 * floats;
}

} // namespace

std::int64_t estimate_activation_bytes(const model_spec& s, const decoder_options& o,
                                       std::int32_t tokens, std::int32_t sequences,
                                       std::int32_t rows) {
  step_limits limits;
  limits.tokens = tokens;
  limits.sequences = sequences;
  limits.logit_rows = rows;
  limits.max_blocks = decoder::block_table_width(s, o);
  limits.position_offset = s.position_offset;
  limits.staged = !o.kv_staged.empty();
  return 4 * (tokens * std::int64_t{s.hidden_size + s.rope.rotary_dim} +
              rows * std::int64_t{s.hidden_size}) +
         step_arrays::device_bytes(limits);
}

std::int64_t estimate_step_bytes(const gpu::device_info& device, const model_spec& spec,
                                 const decoder_options& o) {
  return workspace_bytes(spec, linear_input_type(device, o.compute), o.max_step_tokens,
                         o.max_logit_rows) +
         estimate_activation_bytes(spec, o, o.max_step_tokens, o.max_sequences, o.max_logit_rows) +
         o.carried_bytes;
}

} // namespace twill::models
