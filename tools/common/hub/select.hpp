// select: which files of a repository make up the model that a reference names. Pure.
//
// A folder in Hugging Face's format is its configuration, its tokenizer and the weights that
// models/checkpoint/weight_files would read: one format of them, never two. A model in GGUF is one
// file, or all parts of a split one. All functions throw client_error with what can be named
// instead.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/common/hub/listing.hpp"
#include "tools/common/hub/reference.hpp"

namespace twill::tools::hub {

struct selection {
  bool is_gguf = false;
  std::vector<repo_file> texts;   ///< small files; none for GGUF
  std::vector<repo_file> weights; ///< of a folder: see choose_weights(); GGUF: in order
};

/// What a model of the reference needs; the weights of a folder are left to choose_weights().
selection choose_files(const repo_listing& listing, const model_reference& named);

/// The weight files of a folder. `index` is the text of the index file that index_of() names, or
/// empty without one.
std::vector<repo_file> choose_weights(const repo_listing& listing, std::string_view index,
                                      const model_reference& named);

/// The file that lists the shards of a folder's weights; nullptr when they are one file.
const repo_file* index_of(const repo_listing& listing);

} // namespace twill::tools::hub
