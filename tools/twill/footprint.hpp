// What a model would need in memory, computed from its headers alone; nothing is loaded.
#pragma once

#include <cstdint>

#include "config/options.hpp"
#include "models/compute.hpp"
#include "models/model.hpp"

namespace twill::tools {

struct footprint {
  std::int64_t weight_bytes = 0;          ///< as in the file
  std::int64_t kv_bytes_per_token = 0;    ///< all layers
  std::int32_t context_tokens = 0;        ///< longest sequence
  std::int64_t kv_bytes_per_sequence = 0; ///< of that length
};

footprint footprint_of(const models::model& model, const models::compute_choice& types,
                       const config::options& options);

} // namespace twill::tools
