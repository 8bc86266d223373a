// skeleton: a temporary folder that holds a model of Hugging Face's hub whose weight files contain
// only their headers. Code that reads only headers, such as `twill inspect`, can judge the model
// before gigabytes of weights are fetched.
//
// The folder lies beside the repository's files in the cache, takes only the disk space of the
// headers, and is removed when the object is destroyed. The constructor throws what hub_client
// throws.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/common/hub/hub_cache.hpp"
#include "tools/common/hub/hub_client.hpp"
#include "tools/common/hub/select.hpp"
#include "tools/common/scratch_folder.hpp"

namespace twill::tools::hub {

class model_skeleton {
public:
  /// The configuration and tokenizer files (`files.texts`) must be in the cache's folder for
  /// `commit` already. The headers of the weight files (`files.weights`) are fetched, except for
  /// weight files that are in that folder.
  model_skeleton(hub_client& client, const hub_cache& cache, const model_reference& named,
                 const std::string& commit, const selection& files);

  /// The path to pass to open_model().
  std::string path() const;

  /// Returns `message`, an error about the model, with the model's reference in place of the path
  /// of the temporary folder.
  std::string in_words(const std::string& message) const;

  /// False when the weights are PyTorch files that are not in the cache yet. Their headers are
  /// spread over the files and cannot be fetched alone, so only configuration and tokenizer can be
  /// checked.
  bool has_weights() const { return has_weights_; }

private:
  std::string name_;
  scratch_folder scratch_;
  std::filesystem::path folder_;
  std::string first_; ///< GGUF: path of the first file, relative to `folder_`
  bool has_weights_ = true;
};

/// Returns the reasons why twill cannot serve the model at `path`; empty when it can. Reads only
/// headers.
std::vector<std::string> faults_of_model(const std::string& path);

} // namespace twill::tools::hub
