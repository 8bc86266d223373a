// select: chooses the files of a repository that make up the model a reference names. The functions
// are pure.
//
// A model in Hugging Face's folder format consists of configuration, tokenizer and those weight
// files that models/checkpoint/weight_files would read: safetensors or PyTorch files, never both. A
// GGUF model is one file, or all parts of a split file. When the choice is ambiguous or impossible,
// the functions throw client_error with a message that lists what can be named instead.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/common/hub/listing.hpp"
#include "tools/common/hub/reference.hpp"

namespace twill::tools::hub {

struct selection {
  bool is_gguf = false;
  std::vector<repo_file> texts;   ///< configuration and tokenizer; empty for GGUF
  std::vector<repo_file> weights; ///< GGUF: the parts in order; a folder: filled in by
                                  ///< choose_weights()
};

/// Chooses the files of the model that `named` refers to. For a model in folder format, `weights`
/// is left empty; choose_weights() finds the weight files.
selection choose_files(const repo_listing& listing, const model_reference& named);

/// Chooses the weight files of a model in folder format. `index` is the text of the file that
/// index_of() returns, or empty when index_of() returns nullptr.
std::vector<repo_file> choose_weights(const repo_listing& listing, std::string_view index,
                                      const model_reference& named);

/// The index file that lists the shards of the weights, for a model in folder format; nullptr when
/// the weights are a single file.
const repo_file* index_of(const repo_listing& listing);

} // namespace twill::tools::hub
