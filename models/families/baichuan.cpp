// Baichuan 1 and 2 (arXiv:2309.10305): Q, K and V are fused in one matrix, W_pack; the 7B models
// have rotary positions, the 13B models ALiBi; Baichuan 2 normalises each row of its output head
// (lm_head).
//
// config.json does not state which variant a model is; the code that the authors publish with each
// size does. This file therefore infers the variant. Positions are rotary if the hidden size is
// 4096; if the hidden size is neither 4096 nor 5120, which no published model has, they are rotary
// if the config has `max_position_embeddings`. The head is normalised unless `vocab_size` is 64000,
// the vocabulary of Baichuan 1.
//
// A GGUF file is computed as llama.cpp computes it. No key of the file states the kind of
// positions, so they follow from the number of layers. The head is used as the file stores it,
// without normalisation. The rows of Baichuan 2's head must therefore have been normalised to
// length 1 when the file was made, as its authors advise for programs that were written for
// Baichuan 1.
#include <string>
#include <utility>
#include <vector>

#include "models/families/alibi.hpp"
#include "models/families/common.hpp"
#include "models/families/family.hpp"
#include "models/families/gguf_common.hpp"
#include "models/families/llama_like.hpp"
#include "models/families/rotary.hpp"
#include "models/synth/family_recipe.hpp"

namespace twill::models::families {
namespace {

constexpr std::int32_t hidden_of_7b = 4096;
constexpr std::int32_t hidden_of_13b = 5120;
constexpr std::int32_t vocabulary_of_baichuan1 = 64000;

tensor_names baichuan_names() {
  tensor_names n;
  n.embedding = "model.embed_tokens.weight";
  n.head = "lm_head.weight";
  n.final_norm = "model.norm.weight";
  n.attention_norm = "model.layers.{}.input_layernorm.weight";
  n.qkv = "model.layers.{}.self_attn.W_pack.weight";
  n.o = "model.layers.{}.self_attn.o_proj.weight";
  n.mlp_norm = "model.layers.{}.post_attention_layernorm.weight";
  n.gate = "model.layers.{}.mlp.gate_proj.weight";
  n.up = "model.layers.{}.mlp.up_proj.weight";
  n.down = "model.layers.{}.mlp.down_proj.weight";
  return n;
}

result<model_spec> baichuan_spec(const value& json, const checkpoint& weights) {
  config_reader config(json);
  model_spec spec;
  spec.names = baichuan_names();
  spec.n_layers = config.size({"num_hidden_layers"});
  spec.hidden_size = spec.embedding_size = config.size({"hidden_size"});
  spec.n_heads = spec.n_kv_heads = config.size({"num_attention_heads"});
  spec.head_dim = spec.hidden_size / spec.n_heads;
  spec.mlp_size = config.size({"intermediate_size"});
  spec.context_length = config.size_or({"max_position_embeddings", "model_max_length"}, 4096);
  spec.norm_epsilon = static_cast<float>(config.number_or({"rms_norm_eps"}, 1e-6));
  spec.activation = read_activation(config, "hidden_act", "silu");
  set_attention_scale(spec);
  read_vocabulary(config, weights, spec, false);
  spec.normalised_head = config.size_or({"vocab_size"}, spec.vocab_size) != vocabulary_of_baichuan1;
  const bool rotary =
      spec.hidden_size == hidden_of_7b ||
      (spec.hidden_size != hidden_of_13b && config.find("max_position_embeddings") != nullptr);
  if (config.ok() && rotary) read_rotary(config, spec);
  if (config.ok() && !rotary && spec.n_heads <= 1 << 12)
    spec.alibi_slopes = alibi_slopes(spec.n_heads);
  return finished(config, std::move(spec));
}

constexpr std::int32_t layers_of_7b = 32;
constexpr std::int32_t layers_of_13b = 40;
constexpr std::int32_t most_heads = 1 << 12; // the upper bound that validate() checks

void read_gguf_positions(gguf_reader& file, const checkpoint& weights, model_spec& spec) {
  if (spec.n_layers == layers_of_7b) {
    // Converters to GGUF reorder the rows of Baichuan's Q and K so that the two values of a rotary
    // pair are neighbours, as they do for Llama.
    read_gguf_rotary(file, weights, gpu::rope_kind::interleaved, spec);
  } else if (spec.n_layers == layers_of_13b) {
    spec.rope = {};
    if (spec.n_heads <= most_heads) spec.alibi_slopes = alibi_slopes(spec.n_heads);
  } else {
    file.fail(errc::unsupported,
              file.quoted("block_count") +
                  " must be 32 (7B, rotary) or 40 (13B, ALiBi): no other key tells Baichuan's "
                  "positions, got " +
                  std::to_string(spec.n_layers));
  }
}

result<model_spec> gguf_baichuan_spec(const gguf::metadata& meta, const checkpoint& weights) {
  model_spec spec;
  spec.names = gguf_names(weights);
  gguf_reader file(meta);
  read_gguf_sizes(file, spec);
  read_gguf_vocabulary(file, weights, false, spec);
  read_gguf_positions(file, weights, spec);
  return finished(file, std::move(spec));
}

// ---- text ---------------------------------------------------------------------------------------

// build_chat_input of Baichuan2-13B-Chat puts the system text first, without a role token.
constexpr std::string_view roles =
    "{% for message in messages %}"
    "{% if message['role'] == 'system' %}{{ CUT + message['content'] }}"
    "{% elif message['role'] == 'user' %}{{ USER + message['content'] }}"
    "{% elif message['role'] == 'assistant' %}{{ ASSISTANT + message['content'] }}"
    "{% else %}{{ raise_exception('Roles are system, user and assistant') }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ ASSISTANT }}{% endif %}";

constexpr const char* role_keys[] = {"user_token_id", "assistant_token_id"};
constexpr const char* role_tokens[] = {"<reserved_106>", "<reserved_107>"};

/// The role tokens are those that generation_config.json names, or otherwise those of Baichuan 2.
std::string template_with_roles(const tokenizer& text, const value* generation_config) {
  const auto role = [&](std::size_t i) {
    const value* id =
        generation_config == nullptr ? nullptr : generation_config->find(role_keys[i]);
    if (id == nullptr || id->as_int() == nullptr) return jinja_string(role_tokens[i]);
    return jinja_string(text.token_bytes(static_cast<token_id>(*id->as_int()), true));
  };
  return with_cut_marks(roles,
                        "{% set USER = " + role(0) + " %}{% set ASSISTANT = " + role(1) + " %}");
}

std::string folder_template(const chat_source& model) {
  return template_with_roles(
      model.text, model.generation_config != nullptr ? model.generation_config : &model.config);
}

/// Returns an empty template if the text of a role token (the special token that begins a turn of
/// the user or of the assistant) is not one token of the file's vocabulary. The template writes
/// role tokens as text, so the tokenizer must turn that text into the one token.
std::string gguf_template(const tokenizer& text) {
  return has_token(text, role_tokens[0]) ? template_with_roles(text, nullptr) : std::string();
}

// The earliest models spell the class name differently (BaiChuan) from the later ones (Baichuan).
constexpr std::string_view architectures[] = {"BaichuanForCausalLM", "BaiChuanForCausalLM"};
constexpr std::string_view model_types[] = {"baichuan"};
constexpr std::string_view gguf_architectures[] = {"baichuan"};

// ---- random models ------------------------------------------------------------------------------

void add_presets(std::vector<synth::recipe>& all, const synth::recipe& blank) {
  synth::recipe r =
      synth::make_preset(blank, "baichuan2-7b", synth::text_kind::baichuan,
                         synth::storage_type::bf16, {4096, 32, 32, 32, 11008, 125696, 4096});
  r.norm_epsilon = 1e-6;
  all.push_back(r);
  r = synth::make_preset(blank, "baichuan2-13b", synth::text_kind::baichuan,
                         synth::storage_type::bf16, {5120, 40, 40, 40, 13696, 125696, 4096});
  r.norm_epsilon = 1e-6;
  r.alibi = true;
  all.push_back(r);
  r.preset = "baichuan2-13b-gptq";
  r.dtype = synth::storage_type::f16;
  r.packed = synth::packing::gptq;
  all.push_back(r);
}

void plan_tensors(synth::plan_builder& plan) {
  const synth::recipe& r = plan.made_from();
  const std::int64_t h = r.hidden_size, q = std::int64_t{r.head_size()} * r.n_heads;
  plan.table("model.embed_tokens.weight", r.vocab_size, h, r.tied_head);
  for (std::int32_t i = 0; i < r.n_layers; ++i) {
    const std::string at = "model.layers." + std::to_string(i) + ".";
    plan.norm(at + "input_layernorm.weight");
    plan.packable(at + "self_attn.W_pack", 3 * q, h, at + "qkv");
    plan.packable(at + "self_attn.o_proj", h, q, at + "o");
    plan_llama_mlp(plan, at);
  }
  // Baichuan 2 scales the rows of its output head to length 1, so the scale of the head's weights
  // has no effect on the logits. The weight of the final norm therefore sets the standard deviation
  // of the logits.
  plan.norm("model.norm.weight", synth::logit_deviation);
  plan.table("lm_head.weight", r.vocab_size, h, true);
}

value_object make_config(const synth::recipe& r, const synth::vocabulary& ids) {
  value_object c = {
      {"_from_model_config", true},
      {"architectures", synth::list_of("BaichuanForCausalLM")},
      {"auto_map", value_object{{"AutoConfig", "configuration_baichuan.BaichuanConfig"},
                                {"AutoModelForCausalLM", "modeling_baichuan.BaichuanForCausalLM"}}},
      {"tokenizer_class", "BaichuanTokenizer"},
      {"bos_token_id", ids.bos},
      {"eos_token_id", ids.eos},
      {"hidden_act", "silu"},
      {"hidden_size", r.hidden_size},
      {"initializer_range", 0.02},
      {"intermediate_size", r.mlp_size}};
  // Only configs of rotary models have `max_position_embeddings`, so readers take the key as the
  // sign of rotary positions.
  if (r.alibi)
    c.emplace_back("gradient_checkpointing", false);
  else
    c.emplace_back("max_position_embeddings", r.context_length);
  synth::append(c, {{"model_max_length", r.context_length},
                    {"model_type", "baichuan"},
                    {"num_attention_heads", r.n_heads},
                    {"num_hidden_layers", r.n_layers},
                    {"pad_token_id", ids.pad},
                    {"rms_norm_eps", r.norm_epsilon},
                    {"tie_word_embeddings", false},
                    {"torch_dtype", synth::torch_name(r.dtype)},
                    {"transformers_version", "4.29.2"},
                    {"use_cache", true},
                    {"vocab_size", r.vocab_size}});
  return c;
}

value_object make_generation_config(const synth::recipe&, const synth::vocabulary& ids) {
  return {{"pad_token_id", ids.pad},
          {"bos_token_id", ids.bos},
          {"eos_token_id", ids.eos},
          {"user_token_id", 195},
          {"assistant_token_id", 196},
          {"max_new_tokens", 2048},
          {"temperature", 0.3},
          {"top_k", 5},
          {"top_p", 0.85},
          {"repetition_penalty", 1.05},
          {"do_sample", true},
          {"transformers_version", "4.29.2"}};
}

/// Readers infer the kind of positions from these sizes, because a config does not state it.
result<nothing> check(const synth::recipe& r) {
  if (r.hidden_size != (r.alibi ? hidden_of_7b : hidden_of_13b)) return nothing{};
  return synth::wrong_recipe("hidden",
                             r.alibi ? "another size than 4096 with ALiBi"
                                     : "another size than 5120 with rotary",
                             std::to_string(r.hidden_size));
}

/// llama.cpp infers the kind of positions from the number of layers: a model of 32 layers has
/// rotary positions, a model of 40 layers has ALiBi. With any other number of layers it would apply
/// no positions at all.
result<nothing> check_gguf(const synth::recipe& r) {
  const std::int32_t layers = r.alibi ? layers_of_13b : layers_of_7b;
  if (r.n_layers == layers) return nothing{};
  return failure{errc::unsupported, "`layers` must be " + std::to_string(layers) +
                                        " in a GGUF file of baichuan with " +
                                        (r.alibi ? "ALiBi" : "rotary positions") + ", got " +
                                        std::to_string(r.n_layers)};
}

constexpr synth::gguf_layout make_layout() {
  synth::gguf_layout layout = llama_gguf_layout("baichuan", true);
  layout.fused_qkv = "self_attn.W_pack";
  layout.unit_head_rows = true; // llama.cpp uses the head without normalising it
  layout.any_head_size = false;
  layout.check = check_gguf;
  return layout;
}

constexpr synth::gguf_layout layout = make_layout();
constexpr std::string_view options[] = {"alibi"};

constexpr synth::family_recipe recipe = {.add_presets = add_presets,
                                         .plan = plan_tensors,
                                         .config = make_config,
                                         .generation_config = make_generation_config,
                                         .grouped_heads = false,
                                         .options = options,
                                         .check = check,
                                         .gguf = &layout};

} // namespace

extern constinit const family baichuan = {
    .name = "baichuan",
    .architectures = architectures,
    .model_types = model_types,
    .gguf_architectures = gguf_architectures,
    .folder_spec = baichuan_spec,
    .gguf_spec = gguf_baichuan_spec,
    .tokenizer = {.adds_bos = false, .role_keys = role_keys},
    .chat = {.of_folder = folder_template, .of_gguf = gguf_template},
    .recipe = &recipe};

} // namespace twill::models::families
