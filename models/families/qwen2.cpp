// Qwen2 and Qwen2.5 (arXiv:2407.10671): Llama's architecture with biases on Q, K and V.
#include "models/families/common.hpp"
#include "models/families/llama_like.hpp"

namespace twill::models::families {
namespace {

result<model_spec> qwen2_spec(const value& json, const checkpoint& weights) {
  config_reader config(json);
  model_spec spec = llama_like_spec(config, weights);
  spec.qkv_bias = bias_rule::required;
  read_qwen_window(config, spec);
  return finished(config, std::move(spec));
}

result<model_spec> gguf_qwen2_spec(const gguf::metadata& meta, const checkpoint& weights) {
  return gguf_llama_like_spec(meta, weights, gpu::rope_kind::half_split);
}

constexpr std::string_view architectures[] = {"Qwen2ForCausalLM"};
constexpr std::string_view model_types[] = {"qwen2"};
constexpr std::string_view gguf_architectures[] = {"qwen2"};

// ---- random models ------------------------------------------------------------------------------

void add_presets(std::vector<synth::recipe>& all, const synth::recipe& blank) {
  all.push_back(make_qwen_preset(blank, "qwen2-0.5b", {896, 24, 14, 2, 4864, 151936, 32768}, true));
  all.push_back(
      make_qwen_preset(blank, "qwen2-7b", {3584, 28, 28, 4, 18944, 152064, 32768}, false));
}

void plan_tensors(synth::plan_builder& plan) {
  plan_llama_like(plan, {.qkv_bias = true});
}

value_object make_config(const synth::recipe& r, const synth::vocabulary& ids) {
  return llama_like_config(r, ids, {.architecture = architectures[0], .window_switch = true});
}

constexpr synth::gguf_layout layout = llama_gguf_layout("qwen2", false);
constexpr std::string_view options[] = {"theta", "tied"};

constexpr synth::family_recipe recipe = {.add_presets = add_presets,
                                         .plan = plan_tensors,
                                         .config = make_config,
                                         .options = options,
                                         .gguf = &layout};

} // namespace

extern constinit const family qwen2 = {.name = "qwen2",
                                       .architectures = architectures,
                                       .model_types = model_types,
                                       .gguf_architectures = gguf_architectures,
                                       .folder_spec = qwen2_spec,
                                       .gguf_spec = gguf_qwen2_spec,
                                       .recipe = &recipe};

} // namespace twill::models::families
