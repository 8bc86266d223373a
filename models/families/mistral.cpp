// Mistral 7B (arXiv:2310.06825): Llama's architecture with a sliding window. Its GGUF files have
// the architecture name "llama".
#include "models/families/common.hpp"
#include "models/families/llama_like.hpp"

namespace twill::models::families {
namespace {

result<model_spec> mistral_spec(const value& json, const checkpoint& weights) {
  config_reader config(json);
  model_spec spec = llama_like_spec(config, weights);
  // If the key is absent, the window is the published default, 4096; null means no window.
  const bool absent = json.find("sliding_window") == nullptr;
  spec.window = absent ? 4096 : config.size_or({"sliding_window"}, 0);
  return finished(config, std::move(spec));
}

// The template of Mistral-7B-Instruct. The model has no system role, and an answer is encoded
// separately from the question.
constexpr std::string_view instruct =
    "{{ bos_token }}{% for message in messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ CUT + message['content'] + eos_token }}"
    "{% else %}{{ raise_exception('Roles are user and assistant') }}{% endif %}{% endfor %}";

/// Fine-tuned models such as OpenOrca add ChatML's tokens to the vocabulary and use ChatML.
std::string chat_template(const chat_source& model) {
  const std::string chatml = chatml_template(model.text);
  return chatml.empty() ? with_cut_marks(instruct) : chatml;
}

constexpr std::string_view architectures[] = {"MistralForCausalLM"};
constexpr std::string_view model_types[] = {"mistral"};

// ---- random models ------------------------------------------------------------------------------

void add_presets(std::vector<synth::recipe>& all, const synth::recipe& blank) {
  synth::recipe r =
      synth::make_preset(blank, "mistral-7b", synth::text_kind::sentence_piece,
                         synth::storage_type::bf16, {4096, 32, 32, 8, 14336, 32000, 32768});
  r.window = 4096;
  all.push_back(r);
  r.preset = "mistral-7b-awq"; // has the shape of Mistral-7B-OpenOrca-AWQ
  r.vocab_size = 32002;
  r.chatml = true;
  r.dtype = synth::storage_type::f16;
  r.packed = synth::packing::awq;
  all.push_back(r);
}

void plan_tensors(synth::plan_builder& plan) {
  plan_llama_like(plan, {});
}

value_object make_config(const synth::recipe& r, const synth::vocabulary& ids) {
  return llama_like_config(r, ids, {.architecture = architectures[0], .window = true});
}

constexpr synth::gguf_layout layout = llama_gguf_layout("llama", true);
constexpr std::string_view options[] = {"window", "theta", "tied"};

constexpr synth::family_recipe recipe = {.add_presets = add_presets,
                                         .plan = plan_tensors,
                                         .config = make_config,
                                         .any_head_size = true,
                                         .options = options,
                                         .gguf = &layout};

} // namespace

extern constinit const family mistral = {.name = "mistral",
                                         .architectures = architectures,
                                         .model_types = model_types,
                                         .folder_spec = mistral_spec,
                                         .chat = {.of_folder = chat_template},
                                         .recipe = &recipe};

} // namespace twill::models::families
