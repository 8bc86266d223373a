// family_recipe: describes how random models of one family are made; part of the family's
// descriptor.
//
// Constant data and pure functions. A `recipe` holds the sizes of one model; a family_recipe turns
// a recipe into tensors, config files and (for tools/twill-synth) the layout of a GGUF file.
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

/// Describes how llama.cpp's converter turns the family's folder into a GGUF file. The members name
/// tensors as the folder does.
struct gguf_layout {
  std::string_view architecture; ///< the file's general.architecture
  std::string_view embedding;
  std::string_view final_norm;
  std::string_view head;
  std::string_view layers; ///< prefix of the layer's number: "model.layers."
  /// Pairs of a part's name in the folder and its name in the file, both without layer and suffix.
  std::span<const std::pair<std::string_view, std::string_view>> parts;
  std::string_view fused_qkv = {}; ///< part of the name of a matrix that is split into three
  bool pairs_rotary_rows = false;  ///< rows of Q and K are reordered so that the two values of a
                                   ///< rotary pair are neighbours
  bool unit_head_rows = false;     ///< rows of the head are normalised to length 1
  bool any_head_size = false;      ///< heads * head_size may differ from the hidden size
  std::int32_t mlp_factor = 1;     ///< feed_forward_length is the MLP's width times this factor
  std::int32_t rotary_share = 1;   ///< 1 / rotary_share of the dimensions of a head are rotary
  result<nothing> (*check)(const recipe& r) = nullptr; ///< further rules; may be null
};

struct family_recipe {
  /// Appends recipes with the shapes of published models.
  void (*add_presets)(std::vector<recipe>& all, const recipe& blank);
  /// Adds the tensors to `plan`, in the order in which files hold them.
  void (*plan)(plan_builder& plan);
  /// Makes config.json without `quantization_config`.
  value_object (*config)(const recipe& r, const vocabulary& ids);
  /// Makes generation_config.json. If this is null, the file has only the ids of special tokens.
  value_object (*generation_config)(const recipe& r, const vocabulary& ids) = nullptr;

  // Which sizes and options a recipe of the family may have.
  bool grouped_heads = true;           ///< fewer key-value heads than heads
  bool any_head_size = false;          ///< heads * head_size may differ from the hidden size
  std::int32_t head_size_multiple = 2; ///< what the head size must be a multiple of
  /// Some options exist only in some families: window, embed, pre-norm, alibi, theta, rope-ratio,
  /// bias and tied. This lists those that recipes of this family may use.
  std::span<const std::string_view> options = {};
  result<nothing> (*check)(const recipe& r) = nullptr; ///< further rules; may be null

  /// Null when llama.cpp has no architecture for the family.
  const gguf_layout* gguf = nullptr;
};

/// Sizes of a published model.
struct published_shape {
  std::int32_t hidden, layers, heads, kv_heads, mlp, vocab, context;
};
/// Returns a copy of `blank`, whose family must be set, with the given name, tokenizer, storage
/// type and sizes.
recipe make_preset(const recipe& blank, const char* name, text_kind text, storage_type dtype,
                   const published_shape& sizes);

/// Makes the failure of a rule: "`field` must be <rule>, got <given>".
failure wrong_recipe(const std::string& field, const std::string& rule, const std::string& given);

/// Returns the name that config.json has in torch_dtype, such as "float16".
const char* torch_name(storage_type type);
/// Makes a list with one text.
value list_of(std::string_view text);
/// Appends the members of `more` to `to`.
void append(value_object& to, value_object more);

} // namespace twill::models::synth
