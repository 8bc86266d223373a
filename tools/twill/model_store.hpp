// model_store: the folder of models that were pulled. A model appears in it whole or not at all,
// and nothing outside it is ever changed.
//
// Calls block. Any number of processes may use one folder at once. Throws client_error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace twill::tools {

struct stored_model {
  std::string name; ///< of its file or folder
  std::int64_t bytes = 0;
};

class model_store {
public:
  explicit model_store(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }

  /// Sorted by name; empty when the folder is not there.
  std::vector<stored_model> list() const;

  /// Copies a GGUF file or a Hugging Face folder, or downloads the address of a GGUF file, and
  /// returns the model's path. Of a model in several files, any of them stands for all, and the
  /// model is a folder. `sha256`, when not empty, is what the file must have. The model must
  /// open, or nothing is kept.
  std::string pull(const std::string& source, const std::string& sha256) const;

  /// The default model, fetched or copied from the user's cache.
  std::string pull_default() const;

  /// Removes the model of that name, with or without ".gguf"; false when there is none.
  bool remove(const std::string& name) const;

private:
  std::filesystem::path place_for(const std::string& name) const;

  std::filesystem::path folder_;
};

/// The SHA-256 of a file in hexadecimal digits.
std::string sha256_of(const std::filesystem::path& file);

} // namespace twill::tools
