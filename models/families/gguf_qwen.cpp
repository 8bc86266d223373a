#include "models/families/gguf_qwen.hpp"

#include <string>
#include <utility>

#include "models/families/gguf_common.hpp"

namespace twill::models::families {

result<model_spec> gguf_qwen_spec(const gguf::metadata& meta, const checkpoint& weights) {
  model_spec spec;
  spec.family = "qwen";
  spec.names = gguf_names(weights);
  spec.names.qkv = "blk.{}.attn_qkv.weight";
  spec.qkv_bias = bias_rule::required;
  gguf_reader file(meta, spec.family);
  read_gguf_sizes(file, spec);
  // The key counts both halves of the MLP pair, as the model's own config does.
  if (file.ok() && (spec.mlp_size < 2 || spec.mlp_size % 2 != 0))
    file.fail(errc::bad_metadata, file.quoted("feed_forward_length") +
                                      " must be even and above 0, got " +
                                      std::to_string(spec.mlp_size));
  spec.mlp_size /= 2;
  read_gguf_vocabulary(file, weights, false, spec);
  read_gguf_rotary(file, weights, gpu::rope_kind::half_split, spec);
  return finished(file, std::move(spec));
}

} // namespace twill::models::families
