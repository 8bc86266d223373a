// model_place: determines whether the path that a user gave as a model is a preset of random
// weights, a GGUF model or a Hugging Face folder. Looks at names and at the first bytes of a file.
// Any thread may call.
#pragma once

#include <string>

#include "models/errc.hpp"

namespace twill::models {

enum class model_kind { dummy, gguf, folder };

struct model_place {
  model_kind kind = model_kind::folder;
  std::string path; ///< the given path; for a folder that holds a GGUF model, the path of the
                    ///< model's (first) file
};

/// Finds the kind and the path of a model. If a folder has no config.json and holds one GGUF model,
/// in one file or several, the result is that model. If it holds several models, this fails with
/// `unsupported` and names them. Whether the path exists is not checked; opening it fails if not.
result<model_place> find_model(const std::string& path);

} // namespace twill::models
