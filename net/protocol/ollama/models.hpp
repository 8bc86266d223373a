// GET /api/tags and /api/ps, POST /api/show and /api/pull of Ollama's API. Pure.
//
// Names are listed with a tag, as Ollama's are: ":latest" where a model's id has none, since
// clients (Open WebUI) look for a name with a tag. What is not known is 0 or an empty text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "actors/port/engine_port.hpp"

namespace twill::net {

/// What is served: the version of Ollama whose /api/chat and /api/generate have all members that
/// the ones here have; log-probabilities are the latest. Clients decide by it what they may ask
/// for: VS Code wants 0.6.4, structured outputs came with 0.5.0, thinking with 0.9.0.
inline constexpr const char* ollama_api_version = "0.12.11";

/// Where a model's weights lie, as far as a look at the file system says.
struct weight_files {
  std::int64_t bytes = 0;           ///< 0: unknown
  std::int64_t modified_unix_s = 0; ///< 0: unknown
  std::string format;               ///< "gguf", "safetensors", "pytorch" or unknown
};

struct ollama_model {
  actors::model_info info;
  weight_files files;
  bool on_gpu = false; ///< its device is no host
};

/// "NAME:TAG"
std::string tagged_name(const std::string& id);

std::string ollama_tags_body(std::span<const ollama_model> models);
/// Of those that have their weights in memory.
std::string ollama_ps_body(std::span<const ollama_model> models);
/// `chat_template` is empty where the model has none.
std::string ollama_show_body(const ollama_model& model, const std::string& chat_template);
std::string ollama_version_body();

} // namespace twill::net
