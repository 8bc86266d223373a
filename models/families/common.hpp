// common: readers of the keys of config.json that most families have.
//
// Pure functions; failures go to the config_reader.
#pragma once

#include <string>

#include "models/checkpoint/checkpoint.hpp"
#include "models/families/config_reader.hpp"
#include "models/spec.hpp"

namespace twill::models::families {

/// The activation that `key` names, or `fallback`.
gpu::activation read_activation(config_reader& config, const char* key,
                                const std::string& fallback);

/// Sets the attention's scale to 1 / sqrt(head_dim).
void set_attention_scale(model_spec& spec);

/// Sets vocab_size from the rows of the embedding, since files pad them beyond `vocab_size`, and
/// tied_head from `tie_word_embeddings`, which is `tied_default` when absent. A head that is absent
/// is tied unless an index file names it, and a tied checkpoint may carry a copy of the head all
/// the same.
void read_vocabulary(config_reader& config, const checkpoint& weights, model_spec& spec,
                     bool tied_default);

/// The spec, checked, or the first failure of the config.
result<model_spec> finished(const config_reader& config, model_spec spec);

} // namespace twill::models::families
