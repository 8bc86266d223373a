// family_recipe: how random models of one family are made; a part of the family's descriptor.
//
// Constant data and pure functions. `recipe` says the sizes of one model; what is here turns them
// into tensors, config files and (for tools/twill-synth) the layout of a GGUF file.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "config/base/value.hpp"
#include "models/synth/plan_builder.hpp"
#include "models/synth/recipe.hpp"
#include "models/synth/vocabulary.hpp"

namespace twill::models::synth {

/// How llama.cpp's converter lays the family's folder out as a GGUF file. Names are those of the
/// folder's tensors.
struct gguf_layout {
  std::string_view architecture; ///< the file's general.architecture
  std::string_view embedding;
  std::string_view final_norm;
  std::string_view head;
  std::string_view layers; ///< stands before the layer's number: "model.layers."
  /// Pairs of a name in the folder and in the file, without layer and suffix.
  std::span<const std::pair<std::string_view, std::string_view>> parts;
  std::string_view fused_qkv = {}; ///< a part of the name of a matrix that becomes three
  bool pairs_rotary_rows = false;  ///< rows of Q and K are reordered so that rotary pairs adjoin
  bool unit_head_rows = false;     ///< rows of the head are brought to length 1
  bool any_head_size = false;      ///< heads * head_size may differ from the hidden size
  std::int32_t mlp_factor = 1;     ///< feed_forward_length counts the MLP's width this many times
  std::int32_t rotary_share = 1;   ///< one of so many dimensions of a head rotates
  result<nothing> (*check)(const recipe& r) = nullptr; ///< further rules; may be null
};

struct family_recipe {
  /// Appends the shapes of published models.
  void (*add_presets)(std::vector<recipe>& all, const recipe& blank);
  /// The tensors, in the order in which files hold them.
  void (*plan)(plan_builder& plan);
  /// config.json without `quantization_config`.
  value_object (*config)(const recipe& r, const vocabulary& ids);
  /// generation_config.json. When this is null it has the ids of special tokens alone.
  value_object (*generation_config)(const recipe& r, const vocabulary& ids) = nullptr;

  // Which sizes and options a recipe of the family may have.
  bool grouped_heads = true;           ///< fewer key-value heads than heads
  bool any_head_size = false;          ///< heads * head_size may differ from the hidden size
  std::int32_t head_size_multiple = 2; ///< what the head size must be a multiple of
  /// Options that not every family has, of: window, embed, pre-norm, alibi, theta, rope-ratio,
  /// bias, tied.
  std::span<const std::string_view> options = {};
  result<nothing> (*check)(const recipe& r) = nullptr; ///< further rules; may be null

  /// Null when llama.cpp has no architecture for the family.
  const gguf_layout* gguf = nullptr;
};

/// Sizes of a published model.
struct published_shape {
  std::int32_t hidden, layers, heads, kv_heads, mlp, vocab, context;
};
/// `blank` (which knows its family) with a name, a tokenizer, a storage type and sizes.
recipe make_preset(const recipe& blank, const char* name, text_kind text, storage_type dtype,
                   const published_shape& sizes);

/// A failure of a rule: "`field` must be <rule>, got <given>".
failure wrong_recipe(const std::string& field, const std::string& rule, const std::string& given);

/// "float16", as config.json's torch_dtype says it.
const char* torch_name(storage_type type);
/// A list of one text.
value list_of(std::string_view text);
/// Appends the members of `more`.
void append(value_object& to, value_object more);

} // namespace twill::models::synth
