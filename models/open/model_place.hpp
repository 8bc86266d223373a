// model_place: what a path that somebody gave as a model is: a preset of random weights, a model in
// GGUF or a Hugging Face folder. Looks at names and at the first bytes of a file. Any thread.
#pragma once

#include <string>

#include "models/errc.hpp"

namespace twill::models {

enum class model_kind { dummy, gguf, folder };

struct model_place {
  model_kind kind = model_kind::folder;
  std::string
      path; ///< as given; for a folder that holds a model in GGUF, the path of its (first) file
};

/// A folder without config.json that holds one model in GGUF, in one file or several, is that
/// model's place; several models in it are an error that names them (`unsupported`). What does not
/// exist is found out by whoever opens it.
result<model_place> find_model(const std::string& path);

} // namespace twill::models
