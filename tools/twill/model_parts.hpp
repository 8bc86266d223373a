// model_parts: reads the parts of a model (configuration, weights, tokenizer) one by one, so that
// the error of one part does not hide what the others contain.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace twill::tools {

struct weight_share {
  std::string kind; ///< "F16", "GPTQ-4", ...
  std::int64_t tensors = 0;
  std::int64_t bytes = 0;
};

struct model_parts {
  std::string path;
  std::string format; ///< "GGUF v3", "Hugging Face folder", "dummy"
  std::vector<std::pair<std::string, std::string>> facts; ///< names and values from the model's
                                                          ///< configuration
  std::vector<weight_share> weights;                      ///< largest first
  bool has_own_template = false;
  std::vector<std::string> refused; ///< errors, one per part that cannot be read
};

model_parts read_parts(const std::string& path);

} // namespace twill::tools
