// model_names: by which names clients ask for a model. Internal to models/.
#pragma once

#include <string>
#include <vector>

namespace twill::models {

struct model_names {
  std::string id;                  ///< what lists of models show; it has no spaces
  std::vector<std::string> others; ///< requests may use these too
};

/// The id is the last part of `path` without its shard and the kind of its weights
/// ("SmolLM2-135M-Instruct" of "SmolLM2-135M-Instruct.Q4_1.gguf"), with '-' in place of spaces and
/// other characters that shells and addresses mind. A file name that says nothing ("model.gguf")
/// gives way to `given`, the name in the file itself, which may be empty. In Hugging Face's cache
/// the repository's name counts, and not the folder of the revision. Pure.
model_names names_of(const std::string& given, const std::string& path);

} // namespace twill::models
