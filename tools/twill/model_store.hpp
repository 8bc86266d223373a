// model_store: the folder that holds the pulled models. A model is either completely in the folder
// or not at all, and nothing outside the folder is ever changed.
//
// Calls block. Any number of processes may use one folder at the same time. Calls throw
// client_error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace twill::tools {

struct stored_model {
  std::string name; ///< the name of its file or folder
  std::int64_t bytes = 0;
};

class model_store {
public:
  explicit model_store(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }

  /// The stored models, sorted by name; empty when the folder does not exist.
  std::vector<stored_model> list() const;

  /// Stores a model and returns its path. `source` is a GGUF file, a Hugging Face folder, or the
  /// address of a GGUF file to download. For a GGUF model that is split into several files,
  /// `source` may be any of them; all are stored, in a folder. `sha256`, when not empty, is the
  /// required hash of a single file. Nothing is stored unless the model can be opened.
  std::string pull(const std::string& source, const std::string& sha256) const;

  /// Stores the default model: copies it from the user's cache when it is there, otherwise fetches
  /// it.
  std::string pull_default() const;

  /// Removes the model of that name; ".gguf" may be omitted. Returns false when there is no such
  /// model.
  bool remove(const std::string& name) const;

private:
  std::filesystem::path place_for(const std::string& name) const;

  std::filesystem::path folder_;
};

/// The SHA-256 of a file, in hexadecimal digits.
std::string sha256_of(const std::filesystem::path& file);

} // namespace twill::tools
