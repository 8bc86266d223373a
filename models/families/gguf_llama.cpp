#include "models/families/gguf_llama.hpp"

#include <string>
#include <utility>

#include "models/families/gguf_common.hpp"

namespace twill::models::families {

result<model_spec> gguf_llama_spec(const gguf::metadata& meta, const checkpoint& weights) {
  auto architecture = meta.get_string("general.architecture");
  if (!architecture.ok()) return architecture.error();
  model_spec spec;
  spec.family = architecture.value();
  spec.names = gguf_names(weights);
  spec.names.rope_factors = "rope_freqs.weight";
  if (spec.family == "qwen3") {
    spec.names.q_norm = "blk.{}.attn_q_norm.weight";
    spec.names.k_norm = "blk.{}.attn_k_norm.weight";
  }
  spec.qkv_bias = spec.o_bias = spec.mlp_bias = bias_rule::if_present;
  gguf_reader file(meta, spec.family);
  read_gguf_sizes(file, spec);
  spec.window = file.size_or("attention.sliding_window", 0);
  if (const double scale = file.number_or("attention.scale", 0); scale != 0)
    spec.attention_scale = static_cast<float>(scale);
  read_gguf_vocabulary(file, weights, true, spec);
  // Converters reorder Llama's rows of Q and K so that rotary pairs lie next to each other.
  read_gguf_rotary(
      file, weights,
      spec.family == "llama" ? gpu::rope_kind::interleaved : gpu::rope_kind::half_split, spec);
  return finished(file, std::move(spec));
}

} // namespace twill::models::families
