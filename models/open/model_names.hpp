// model_names: the names by which clients request a model. Internal to models/.
#pragma once

#include <string>
#include <vector>

namespace twill::models {

struct model_names {
  std::string id;                  ///< the name that lists of models show; it has no spaces
  std::vector<std::string> others; ///< further names that requests may use
};

/// Derives a model's names. The id is the last part of `path` without the shard number and the kind
/// of the weights ("SmolLM2-135M-Instruct" of "SmolLM2-135M-Instruct.Q4_1.gguf"), with '-' in place
/// of spaces and of other characters that need quotes in a shell or in a URL. If the file has a
/// name that any model may have ("model.gguf"), the id is made from `given`, the name inside the
/// file, which may be empty. In Hugging Face's cache the id is the repository's name, not the name
/// of the revision's folder. The function is pure.
model_names names_of(const std::string& given, const std::string& path);

} // namespace twill::models
