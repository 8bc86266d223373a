#include "models/families/registry.hpp"
#include "models/synth/family_recipe.hpp"

namespace twill::models::synth {

recipe make_preset(const recipe& blank, const char* name, text_kind text, storage_type dtype,
                   const published_shape& sizes) {
  recipe r = blank;
  r.preset = name;
  r.text = text;
  r.dtype = dtype;
  r.hidden_size = sizes.hidden;
  r.n_layers = sizes.layers;
  r.n_heads = sizes.heads;
  r.n_kv_heads = sizes.kv_heads;
  r.mlp_size = sizes.mlp;
  r.vocab_size = sizes.vocab;
  r.context_length = sizes.context;
  return r;
}

const std::vector<recipe>& presets() {
  static const std::vector<recipe> all = [] {
    std::vector<recipe> list;
    for (const families::family* family : families::all()) {
      recipe blank;
      blank.family = family;
      family->recipe->add_presets(list, blank);
    }
    return list;
  }();
  return all;
}

} // namespace twill::models::synth
