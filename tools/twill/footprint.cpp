#include "tools/twill/footprint.hpp"

#include <algorithm>

#include "models/decoder/decoder.hpp"

namespace twill::tools {

footprint footprint_of(const models::model& model, const models::compute_choice& types,
                       const config::options& options) {
  models::decoder_options decoding;
  decoding.compute = types.compute;
  decoding.kv_type = types.kv_type;
  decoding.block_tokens = options.kv.block_tokens;

  footprint need;
  for (const auto& tensor : model.weights->tensors())
    need.weight_bytes += tensor.bytes;
  need.kv_bytes_per_token =
      models::decoder::block_bytes(model.spec, decoding) / options.kv.block_tokens;
  need.context_tokens = model.spec.context_length;
  if (options.scheduler.max_context_tokens > 0)
    need.context_tokens = std::min(need.context_tokens, options.scheduler.max_context_tokens);
  need.kv_bytes_per_sequence = need.kv_bytes_per_token * need.context_tokens;
  return need;
}

} // namespace twill::tools
