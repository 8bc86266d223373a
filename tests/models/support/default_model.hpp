// The path of the default model; tests that need it fail when it is absent.
#pragma once

#include <cstdlib>
#include <string>

namespace twill::test {

inline std::string default_model_path() {
  if (const char* path = std::getenv("TWILL_DEFAULT_MODEL")) return path;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home_folder = std::getenv("HOME");
  const std::string folder =
      cache != nullptr ? cache : std::string(home_folder != nullptr ? home_folder : "") + "/.cache";
  return folder + "/twill/models/SmolLM2-135M-Instruct.Q4_1.gguf";
}

} // namespace twill::test
