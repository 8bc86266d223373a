// common: functions that read the keys of config.json which most families have.
//
// Pure functions; they report failures to the config_reader.
#pragma once

#include <string>

#include "models/checkpoint/checkpoint.hpp"
#include "models/families/config_reader.hpp"
#include "models/spec.hpp"

namespace twill::models::families {

/// Returns the activation that `key` names, or `fallback` if the key is absent.
gpu::activation read_activation(config_reader& config, const char* key,
                                const std::string& fallback);

/// Sets the attention's scale to 1 / sqrt(head_dim).
void set_attention_scale(model_spec& spec);

/// Sets vocab_size to the number of rows of the embedding, because files pad the embedding beyond
/// the config's `vocab_size`. Sets tied_head from `tie_word_embeddings`, which is `tied_default` if
/// absent. A head that is not in the checkpoint is tied too, unless an index file lists the head. A
/// tied checkpoint may contain a copy of the head nevertheless.
void read_vocabulary(config_reader& config, const checkpoint& weights, model_spec& spec,
                     bool tied_default);

/// Returns the validated spec, or the first failure of the config.
result<model_spec> finished(const config_reader& config, model_spec spec);

} // namespace twill::models::families
