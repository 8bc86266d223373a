// family: a descriptor with everything that twill has to know about one family of models.
//
// A descriptor is constant data, defined in the family's own file and listed in registry.cpp. No
// other code tests a family's name: every difference between families is a member of this struct or
// a field of model_spec. Any thread may read a descriptor.
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
  std::string_view name; ///< name for users and messages: "llama"
  /// Every class name of the family that checkpoints have in `architectures` of config.json.
  name_list architectures;
  /// The values of `model_type` in config.json that this family alone uses.
  name_list model_types;
  /// The values of general.architecture in GGUF files of the family.
  name_list gguf_architectures = {};

  /// Makes the spec of a folder from its config.json. The caller sets model_spec::family.
  result<model_spec> (*folder_spec)(const value& config, const checkpoint& weights) = nullptr;
  /// Makes the spec of a GGUF file. Null if `gguf_architectures` is empty.
  result<model_spec> (*gguf_spec)(const gguf::metadata& meta, const checkpoint& weights) = nullptr;

  tokenizer_hints tokenizer = {};
  chat_convention chat = {};
  /// How models/synth makes random models of the family. Never null.
  const synth::family_recipe* recipe = nullptr;
};

} // namespace twill::models::families
