// The replies of GET /api/tags, /api/ps and /api/version and of POST /api/show in Ollama's API. The
// functions are pure.
//
// Model names are listed with a tag, as Ollama does. A model id without a tag gets ":latest",
// because clients such as Open WebUI look for names with a tag. Unknown values are written as 0 or
// an empty text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "actors/port/engine_port.hpp"

namespace twill::net {

/// The version of Ollama that /api/version states: the first version whose /api/chat and
/// /api/generate have all members that twill supports, the newest of which are the
/// log-probabilities. Clients decide by the version which features to use: VS Code requires 0.6.4,
/// structured outputs came with 0.5.0, thinking with 0.9.0.
inline constexpr const char* ollama_api_version = "0.12.11";

/// Properties of a model's weight files, as found in the file system.
struct weight_files {
  std::int64_t bytes = 0;           ///< 0: unknown
  std::int64_t modified_unix_s = 0; ///< 0: unknown
  std::string format;               ///< "gguf", "safetensors", "pytorch" or unknown
};

struct ollama_model {
  actors::model_info info;
  weight_files files;
  bool on_gpu = false; ///< the model runs on a GPU, not on the host
};

/// Returns the model's id with a tag, "NAME:TAG".
std::string tagged_name(const std::string& id);

std::string ollama_tags_body(std::span<const ollama_model> models);
/// Lists only the models whose weights are in memory.
std::string ollama_ps_body(std::span<const ollama_model> models);
/// `chat_template` is empty if the model has none.
std::string ollama_show_body(const ollama_model& model, const std::string& chat_template);
std::string ollama_version_body();

} // namespace twill::net
