// configs: makes the JSON files of a random model's folder, with the keys that published folders of
// its family have.
//
// Pure functions of a valid recipe (recipe.hpp).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/base/value.hpp"
#include "models/synth/recipe.hpp"

namespace twill::models::synth {

value make_config(const recipe& r);            ///< config.json
value make_generation_config(const recipe& r); ///< generation_config.json
value make_tokenizer_config(const recipe& r);  ///< tokenizer_config.json

/// Returns name and contents of quantize_config.json (GPTQ) or quant_config.json (AWQ); nothing for
/// dense weights.
std::optional<std::pair<std::string, value>> make_quantization_file(const recipe& r);

} // namespace twill::models::synth
