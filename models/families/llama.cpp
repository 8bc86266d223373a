// Llama 1 to 3 (arXiv:2302.13971, 2307.09288, 2407.21783) and models of the same architecture, such
// as SmolLM2 and Yi.
#include "models/families/common.hpp"
#include "models/families/llama_like.hpp"

namespace twill::models::families {
namespace {

result<model_spec> llama_spec(const value& json, const checkpoint& weights) {
  config_reader config(json);
  model_spec spec = llama_like_spec(config, weights);
  spec.qkv_bias = spec.o_bias = attention_bias(config);
  spec.mlp_bias = config.flag_or("mlp_bias", false) ? bias_rule::required : bias_rule::none;
  return finished(config, std::move(spec));
}

result<model_spec> gguf_llama_spec(const gguf::metadata& meta, const checkpoint& weights) {
  return gguf_llama_like_spec(meta, weights, gpu::rope_kind::interleaved);
}

// Early conversions spell the class name as the paper spells Llama (LLaMA).
constexpr std::string_view architectures[] = {"LlamaForCausalLM", "LLaMAForCausalLM"};
constexpr std::string_view model_types[] = {"llama"};
constexpr std::string_view gguf_architectures[] = {"llama"};

// ---- random models ------------------------------------------------------------------------------

void add_presets(std::vector<synth::recipe>& all, const synth::recipe& blank) {
  using synth::storage_type, synth::text_kind, synth::make_preset;
  all.push_back(make_preset(blank, "llama2-7b", text_kind::sentence_piece, storage_type::f16,
                            {4096, 32, 32, 32, 11008, 32000, 4096}));
  all.push_back(make_preset(blank, "llama2-13b", text_kind::sentence_piece, storage_type::f16,
                            {5120, 40, 40, 40, 13824, 32000, 4096}));
  synth::recipe r = make_preset(blank, "llama3-8b", text_kind::llama3_json, storage_type::bf16,
                                {4096, 32, 32, 8, 14336, 128256, 8192});
  r.rope_theta = 500000;
  all.push_back(r);
  r = make_preset(blank, "smollm2-135m", text_kind::smollm_json, storage_type::bf16,
                  {576, 30, 9, 3, 1536, 49152, 8192});
  r.rope_theta = 100000;
  r.tied_head = true;
  all.push_back(r);
  // The daemon runs no forward pass for this preset: it draws tokens without computing anything.
  r = make_preset(blank, "null", text_kind::smollm_json, storage_type::bf16,
                  {32, 1, 1, 1, 64, 4096, 8192});
  all.push_back(r);
}

void plan_tensors(synth::plan_builder& plan) {
  const bool biased = plan.made_from().attention_bias;
  plan_llama_like(plan, {.qkv_bias = biased, .o_bias = biased});
}

value_object make_config(const synth::recipe& r, const synth::vocabulary& ids) {
  return llama_like_config(
      r, ids, {.architecture = architectures[0], .llama = true, .attention_bias = true});
}

constexpr synth::gguf_layout layout = llama_gguf_layout("llama", true);
constexpr std::string_view options[] = {"theta", "bias", "tied"};

constexpr synth::family_recipe recipe = {.add_presets = add_presets,
                                         .plan = plan_tensors,
                                         .config = make_config,
                                         .any_head_size = true,
                                         .options = options,
                                         .gguf = &layout};

} // namespace

extern constinit const family llama = {.name = "llama",
                                       .architectures = architectures,
                                       .model_types = model_types,
                                       .gguf_architectures = gguf_architectures,
                                       .folder_spec = llama_spec,
                                       .gguf_spec = gguf_llama_spec,
                                       .recipe = &recipe};

} // namespace twill::models::families
