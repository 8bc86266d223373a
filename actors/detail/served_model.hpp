// served_model: what sessions and the port need of the model that is being served.
//
// Immutable once made and shared by handle, so any thread may read it. It outlives restarts of the
// executor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "models/model.hpp"

namespace twill::actors {

struct served_model {
  std::shared_ptr<const models::model> files;
  std::string id;
  std::int64_t created_unix_s = 0;
  std::int32_t max_context_tokens = 0; ///< prompt + output of one sequence
  std::int64_t kv_tokens = 0;          ///< positions that the KV cache holds
  /// Longer text cannot fit the context, whatever its tokens are, and is refused before tokenizing.
  std::size_t max_prompt_bytes = 0;
};
using served_model_ptr = std::shared_ptr<const served_model>;

} // namespace twill::actors
