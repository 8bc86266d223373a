// common: what the readers of config.json share: vocabulary, activation, attention scale.
//
// Pure functions; failures go to the config_reader.
#pragma once

#include <string>

#include "models/checkpoint/checkpoint.hpp"
#include "models/families/config_reader.hpp"
#include "models/spec.hpp"

namespace twill::models::families {

/// The activation under `key`.
gpu::activation read_activation(config_reader& config, const char* key,
                                const std::string& fallback);

/// 1 / sqrt(head_dim).
void set_attention_scale(model_spec& spec);

/// vocab_size from the embedding's rows (files pad them beyond `vocab_size`), and whether the head
/// is tied: as `tie_word_embeddings` says, `tied_default` when it does not; a head that is absent
/// is tied. A tied checkpoint may carry a copy of the head all the same.
void read_vocabulary(config_reader& config, const checkpoint& weights, model_spec& spec,
                     bool tied_default);

/// The spec, checked, or the first failure of the config.
result<model_spec> finished(const config_reader& config, model_spec spec);

} // namespace twill::models::families
