// dummy: makes a random model without files, for paths like "dummy:opt-1.3b?layers=2&seed=3".
//
// The model that open_dummy() returns is immutable; any thread may read it. Rows of weights are
// generated while they are packed, so weights take no memory before that. Packed weights equal, bit
// for bit, those of the folder that write_checkpoint() writes for the same recipe. The tokenizer is
// read from files in a private temporary folder, which is removed before open_dummy() returns.
// Fails with bad_metadata for an unknown preset or option.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "config/base/value.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/errc.hpp"
#include "models/synth/recipe.hpp"
#include "models/text/tokenizer.hpp"

namespace twill::models::synth {

struct dummy_model {
  std::string name;         ///< "opt-1.3b?layers=2"
  std::string quantization; ///< "GPTQ-4", "AWQ-4", ...; empty for dense weights
  value config;             ///< the contents of config.json
  value generation_config;
  value tokenizer_config;
  std::shared_ptr<const checkpoint> weights;
  std::shared_ptr<const tokenizer> text;
};

/// True for paths that begin with "dummy:".
bool is_dummy(std::string_view path);

/// Parses the part of `path` after "dummy:".
result<recipe> parse_dummy(std::string_view path);

result<dummy_model> open_dummy(const std::string& path);

/// Makes only the weights.
std::shared_ptr<const checkpoint> make_dummy_weights(const recipe& r);

} // namespace twill::models::synth
