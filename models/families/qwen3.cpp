// Qwen3 (arXiv:2505.09388): Llama's architecture with norms of the query and key heads, and with a
// head size that is independent of the hidden size.
#include "models/families/common.hpp"
#include "models/families/llama_like.hpp"

namespace twill::models::families {
namespace {

result<model_spec> qwen3_spec(const value& json, const checkpoint& weights) {
  config_reader config(json);
  model_spec spec = llama_like_spec(config, weights);
  spec.names.q_norm = "model.layers.{}.self_attn.q_norm.weight";
  spec.names.k_norm = "model.layers.{}.self_attn.k_norm.weight";
  spec.qkv_bias = spec.o_bias = attention_bias(config);
  read_qwen_window(config, spec);
  return finished(config, std::move(spec));
}

result<model_spec> gguf_qwen3_spec(const gguf::metadata& meta, const checkpoint& weights) {
  auto spec = gguf_llama_like_spec(meta, weights, gpu::rope_kind::half_split);
  if (!spec.ok()) return spec;
  spec.value().names.q_norm = "blk.{}.attn_q_norm.weight";
  spec.value().names.k_norm = "blk.{}.attn_k_norm.weight";
  return spec;
}

constexpr std::string_view architectures[] = {"Qwen3ForCausalLM"};
constexpr std::string_view model_types[] = {"qwen3"};
constexpr std::string_view gguf_architectures[] = {"qwen3"};

// ---- random models ------------------------------------------------------------------------------

void add_presets(std::vector<synth::recipe>& all, const synth::recipe& blank) {
  const auto add = [&](const char* name, const synth::published_shape& sizes, bool tied) {
    synth::recipe r = make_qwen_preset(blank, name, sizes, tied);
    r.head_dim = 128;
    all.push_back(r);
  };
  add("qwen3-0.6b", {1024, 28, 16, 8, 3072, 151936, 40960}, true);
  add("qwen3-8b", {4096, 36, 32, 8, 12288, 151936, 40960}, false);
}

void plan_tensors(synth::plan_builder& plan) {
  plan_llama_like(plan, {.head_norms = true});
}

value_object make_config(const synth::recipe& r, const synth::vocabulary& ids) {
  return llama_like_config(r, ids,
                           {.architecture = architectures[0],
                            .transformers_version = "4.51.0",
                            .attention_bias = true,
                            .window_switch = true});
}

constexpr synth::gguf_layout layout = llama_gguf_layout("qwen3", false);
constexpr std::string_view options[] = {"theta", "tied"};

constexpr synth::family_recipe recipe = {.add_presets = add_presets,
                                         .plan = plan_tensors,
                                         .config = make_config,
                                         .any_head_size = true,
                                         .options = options,
                                         .gguf = &layout};

} // namespace

extern constinit const family qwen3 = {.name = "qwen3",
                                       .architectures = architectures,
                                       .model_types = model_types,
                                       .gguf_architectures = gguf_architectures,
                                       .folder_spec = qwen3_spec,
                                       .gguf_spec = gguf_qwen3_spec,
                                       .recipe = &recipe};

} // namespace twill::models::families
