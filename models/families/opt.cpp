// OPT (arXiv:2205.01068): learned positions, which begin at row 2 of their table, layer norms, ReLU
// and a tied head.
//
// The 350M model normalises after each residual sum, has no final norm, and projects from and to an
// embedding that is narrower than the hidden size. llama.cpp has no architecture for OPT.
#include <string>
#include <utility>
#include <vector>

#include "models/families/common.hpp"
#include "models/families/family.hpp"
#include "models/synth/family_recipe.hpp"

namespace twill::models::families {
namespace {

constexpr std::int32_t first_position_row = 2;

tensor_names opt_names(const std::string& root) {
  const std::string layer = root + "layers.{}.";
  tensor_names n;
  n.embedding = root + "embed_tokens.weight";
  n.positions = root + "embed_positions.weight";
  n.head = "lm_head.weight";
  n.attention_norm = layer + "self_attn_layer_norm.weight";
  n.q = layer + "self_attn.q_proj.weight";
  n.k = layer + "self_attn.k_proj.weight";
  n.v = layer + "self_attn.v_proj.weight";
  n.o = layer + "self_attn.out_proj.weight";
  n.mlp_norm = layer + "final_layer_norm.weight";
  n.up = layer + "fc1.weight";
  n.down = layer + "fc2.weight";
  return n;
}

result<model_spec> opt_spec(const value& json, const checkpoint& weights) {
  // Exports of the bare model (OPTModel) and of wrapped ones name the same tensors differently.
  std::string root = "model.decoder.";
  for (const char* other : {"decoder.", "model.model.decoder."})
    if (weights.find(root + "embed_tokens.weight") == nullptr &&
        weights.find(std::string(other) + "embed_tokens.weight") != nullptr)
      root = other;

  config_reader config(json);
  model_spec spec;
  spec.names = opt_names(root);
  spec.n_layers = config.size({"num_hidden_layers"});
  spec.hidden_size = config.size({"hidden_size"});
  spec.embedding_size = config.size_or({"word_embed_proj_dim"}, spec.hidden_size);
  spec.n_heads = spec.n_kv_heads = config.size({"num_attention_heads"});
  spec.head_dim = spec.hidden_size / spec.n_heads;
  spec.mlp_size = config.size({"ffn_dim"});
  spec.context_length = spec.most_positions = config.size({"max_position_embeddings"});
  spec.position_offset = first_position_row;
  spec.norm = norm_kind::layer;
  spec.norm_epsilon = 1e-5f;
  spec.norms =
      config.flag_or("do_layer_norm_before", true) ? norm_place::before : norm_place::after;
  spec.activation = read_activation(config, "activation_function", "relu");
  spec.gated_mlp = false;
  config.require_flag("layer_norm_elementwise_affine", true);
  spec.qkv_bias = spec.o_bias = spec.mlp_bias =
      config.flag_or("enable_bias", true) ? bias_rule::required : bias_rule::none;
  if (spec.norms == norm_place::before && !config.flag_or("_remove_final_layer_norm", false))
    spec.names.final_norm = root + "final_layer_norm.weight";
  if (spec.embedding_size != spec.hidden_size) {
    spec.names.project_in = root + "project_in.weight";
    spec.names.project_out = root + "project_out.weight";
  }
  set_attention_scale(spec);
  read_vocabulary(config, weights, spec, true);
  return finished(config, std::move(spec));
}

constexpr std::string_view architectures[] = {"OPTForCausalLM", "OPTModel"};
constexpr std::string_view model_types[] = {"opt"};

// ---- random models ------------------------------------------------------------------------------

void add_presets(std::vector<synth::recipe>& all, const synth::recipe& blank) {
  const auto opt = [&](const char* name, std::int32_t hidden, std::int32_t layers,
                       std::int32_t heads) {
    all.push_back(synth::make_preset(blank, name, synth::text_kind::gpt2_files,
                                     synth::storage_type::f16,
                                     {hidden, layers, heads, heads, 4 * hidden, 50272, 2048}));
    all.back().tied_head = true;
  };
  opt("opt-125m", 768, 12, 12);
  opt("opt-350m", 1024, 24, 16);
  all.back().embed_dim = 512;
  all.back().pre_norm = false;
  opt("opt-1.3b", 2048, 24, 32);
  opt("opt-2.7b", 2560, 32, 32);
  opt("opt-6.7b", 4096, 32, 32);
  opt("opt-13b", 5120, 40, 40);
  opt("opt-30b", 7168, 48, 56);
  opt("opt-66b", 9216, 64, 72);
  opt("opt-175b", 12288, 96, 96);
}

void plan_tensors(synth::plan_builder& plan) {
  const synth::recipe& r = plan.made_from();
  const std::int64_t h = r.hidden_size, e = r.embedding_size();
  const std::string base = "model.decoder.";
  plan.table(base + "embed_tokens.weight", r.vocab_size, e, true);
  plan.add(base + "embed_positions.weight", {r.context_length + first_position_row, h}, 0, 0.2);
  if (e != h) {
    plan.matrix(base + "project_in", h, e);
    plan.matrix(base + "project_out", e, h);
  }
  if (r.pre_norm) plan.layer_norm(base + "final_layer_norm");
  for (std::int32_t i = 0; i < r.n_layers; ++i) {
    const std::string at = base + "layers." + std::to_string(i) + ".";
    for (const char* part : {"q_proj", "k_proj", "v_proj"})
      plan.biased(at + "self_attn." + part, h, h, at + "qkv");
    plan.biased(at + "self_attn.out_proj", h, h, at + "o");
    plan.layer_norm(at + "self_attn_layer_norm");
    plan.biased(at + "fc1", r.mlp_size, h, at + "up");
    plan.biased(at + "fc2", h, r.mlp_size, at + "down");
    plan.layer_norm(at + "final_layer_norm");
  }
}

value_object make_config(const synth::recipe& r, const synth::vocabulary& ids) {
  return {{"_name_or_path", r.preset},
          {"_remove_final_layer_norm", false},
          {"activation_dropout", 0.0},
          {"activation_function", "relu"},
          {"architectures", synth::list_of("OPTForCausalLM")},
          {"attention_dropout", 0.0},
          {"bos_token_id", ids.bos},
          {"do_layer_norm_before", r.pre_norm},
          {"dropout", 0.1},
          {"eos_token_id", ids.eos},
          {"ffn_dim", r.mlp_size},
          {"hidden_size", r.hidden_size},
          {"init_std", 0.02},
          {"layerdrop", 0.0},
          {"max_position_embeddings", r.context_length},
          {"model_type", "opt"},
          {"num_attention_heads", r.n_heads},
          {"num_hidden_layers", r.n_layers},
          {"pad_token_id", ids.pad},
          {"prefix", "</s>"},
          {"torch_dtype", synth::torch_name(r.dtype)},
          {"transformers_version", "4.21.0.dev0"},
          {"use_cache", true},
          {"vocab_size", r.vocab_size},
          {"word_embed_proj_dim", r.embedding_size()}};
}

result<nothing> check(const synth::recipe& r) {
  if (!r.tied_head) return synth::wrong_recipe("tied", "true for opt", "false");
  return nothing{};
}

constexpr std::string_view options[] = {"embed", "pre-norm", "tied"};

constexpr synth::family_recipe recipe = {.add_presets = add_presets,
                                         .plan = plan_tensors,
                                         .config = make_config,
                                         .grouped_heads = false,
                                         .options = options,
                                         .check = check};

} // namespace

extern constinit const family opt = {.name = "opt",
                                     .architectures = architectures,
                                     .model_types = model_types,
                                     .folder_spec = opt_spec,
                                     .tokenizer = {.adds_bos = true},
                                     .recipe = &recipe};

} // namespace twill::models::families
