// candidate: a model whose accuracy is measured, and the tokens that it is measured on.
//
// Golden folders need no tokenizer: their golden.json lists prompts and the greedy tokens that a
// reference implementation continued them with. Any other model takes a text. Immutable; any
// thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/checkpoint/checkpoint.hpp"
#include "models/errc.hpp"
#include "models/spec.hpp"
#include "tools/twill-bench/accuracy/forced_decoder.hpp"

namespace twill::bench {

struct candidate {
  std::string name;
  models::model_spec spec;
  std::shared_ptr<const models::checkpoint> weights;
  std::vector<token_sequence> sequences;
};

/// A folder with golden.json, on its prompts and greedy tokens.
models::result<candidate> open_golden(const std::string& folder, const std::string& name);

/// Any model on a text, cut into windows of the model's context length at most.
models::result<candidate> open_with_text(const std::string& path, const std::string& text);

/// Folders at or below `root` that have a golden.json, sorted.
std::vector<std::string> golden_folders_below(const std::string& root);

} // namespace twill::bench
