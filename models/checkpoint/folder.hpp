// folder: a Hugging Face model folder, its configuration read and its weights mapped and checked.
//
// Immutable after open(); any thread may read. Weights are read from model.safetensors or its
// shards, else from pytorch_model.bin or its shards, else from the folder's only .safetensors file.
// The several tensors in which GPTQ or AWQ stores a matrix appear as one ordinary matrix. Fails
// with file_unreadable, bad_format, missing_tensor, bad_metadata or unsupported; the detail names
// the file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/base/value.hpp"
#include "models/checkpoint/checkpoint.hpp"
#include "models/errc.hpp"

namespace twill::models {

class mapped_file;

class folder {
public:
  /// `path` names the folder or a file in it; a weight file that no index lists is then read alone.
  static result<std::shared_ptr<const folder>> open(const std::string& path);
  ~folder();

  const std::string& path() const; ///< the folder's path
  const value& config() const;     ///< config.json, which is an object
  /// The object of the file of that name; nullptr when the folder has no such file.
  const value* generation_config() const;
  const value* tokenizer_config() const;

  /// All shards as one checkpoint; quantised matrices are named `x.weight`. // (out, in)
  std::shared_ptr<const checkpoint> weights() const;
  /// "GPTQ-4", "GPTQ-8" or "AWQ-4"; empty for dense weights.
  std::string quantization() const;
  /// The files that say what is computed: weights, and the configuration of model and quantisation.
  const std::vector<std::shared_ptr<const mapped_file>>& files() const;

private:
  folder();
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace twill::models
