// skeleton: a model of the hub as a folder whose weight files have their headers alone, so that
// everything that reads headers, as `twill inspect` does, judges the model before gigabytes come.
//
// The folder lies beside the repository's files in the cache, takes the room of the headers, and
// goes away with the object. Throws as hub_client does.
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
  /// `files.texts` are in the snapshot already; of `files.weights` the headers are fetched, except
  /// of those in the snapshot.
  model_skeleton(hub_client& client, const hub_cache& cache, const model_reference& named,
                 const std::string& commit, const selection& files);

  /// What open_model() takes.
  std::string path() const;

  /// A message about the skeleton with the reference in the place of its path.
  std::string in_words(const std::string& message) const;

  /// Whether the skeleton has weights: the headers of PyTorch's files are spread over them, so of
  /// these only configuration and tokenizer can be judged.
  bool has_weights() const { return has_weights_; }

private:
  std::string name_;
  scratch_folder scratch_;
  std::filesystem::path folder_;
  std::string first_; ///< GGUF: the path of the first file below the folder
  bool has_weights_ = true;
};

/// Why twill would not serve the model at a path; empty when it would. Reads headers.
std::vector<std::string> faults_of_model(const std::string& path);

} // namespace twill::tools::hub
