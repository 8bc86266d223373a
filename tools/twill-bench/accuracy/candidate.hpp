// candidate: a model whose accuracy is measured, and the tokens that it is measured with.
//
// A golden folder is a model folder with a golden.json, which lists prompts and the greedy tokens
// with which a reference implementation continued them. It needs no tokenizer. Any other model is
// measured with a text. A candidate is immutable and may be used by any thread.
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

/// Opens a folder with golden.json. The model will be measured with the prompts and greedy tokens
/// of this file.
models::result<candidate> open_golden(const std::string& folder, const std::string& name);

/// Opens any model. The model will be measured with `text`, which is cut into windows of at most
/// the model's context length.
models::result<candidate> open_with_text(const std::string& path, const std::string& text);

/// Folders at or below `root` that have a golden.json, sorted.
std::vector<std::string> golden_folders_below(const std::string& root);

} // namespace twill::bench
