#include "models/families/gguf_chatglm.hpp"

#include <utility>

#include "models/families/gguf_common.hpp"

namespace twill::models::families {

result<model_spec> gguf_chatglm_spec(const gguf::metadata& meta, const checkpoint& weights) {
  model_spec spec;
  spec.family = "chatglm";
  spec.names = gguf_names(weights);
  spec.names.gate_up = "blk.{}.ffn_up.weight"; // gate above up, in one
  spec.qkv_bias = bias_rule::if_present;
  gguf_reader file(meta, spec.family);
  read_gguf_sizes(file, spec);
  read_gguf_vocabulary(file, weights, true, spec);
  read_gguf_rotary(file, weights, gpu::rope_kind::interleaved, spec);
  return finished(file, std::move(spec));
}

} // namespace twill::models::families
