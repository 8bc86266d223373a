// family: everything that twill knows about one family of models, in one descriptor.
//
// A descriptor is constant data, defined in the family's own file and listed in registry.cpp. No
// other code tests a family's name: what differs between families is a member here or a field of
// model_spec. Any thread may read it.
#pragma once

#include <span>
#include <string_view>

#include "config/base/value.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/checkpoint/gguf/metadata.hpp"
#include "models/spec.hpp"
#include "models/text/chat_conventions.hpp"
#include "models/text/tokenizer/tokenizer_hints.hpp"

namespace twill::models::synth {
struct family_recipe;
}

namespace twill::models::families {

using name_list = std::span<const std::string_view>;

struct family {
  std::string_view name; ///< for people and messages: "llama"
  /// Every name under which checkpoints carry the family in config.json's `architectures`.
  name_list architectures;
  /// The values of config.json's `model_type` that mean this family and no other.
  name_list model_types;
  /// The values of a GGUF file's general.architecture.
  name_list gguf_architectures = {};

  /// The spec of a folder, from its config.json. The caller fills in model_spec::family.
  result<model_spec> (*folder_spec)(const value& config, const checkpoint& weights) = nullptr;
  /// The spec of a GGUF file. Null when `gguf_architectures` is empty.
  result<model_spec> (*gguf_spec)(const gguf::metadata& meta, const checkpoint& weights) = nullptr;

  tokenizer_hints tokenizer = {};
  chat_convention chat = {};
  /// How random models of the family are made (models/synth). Never null.
  const synth::family_recipe* recipe = nullptr;
};

} // namespace twill::models::families
