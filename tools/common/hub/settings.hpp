// settings: the address of Hugging Face's hub, the cache folder and the access token. They come
// from the environment variables that Python's huggingface_hub library reads, so that twill and
// that library share one cache and one token.
//
// Variables: HF_ENDPOINT; HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME, XDG_CACHE_HOME; HF_TOKEN,
// HUGGING_FACE_HUB_TOKEN, HF_TOKEN_PATH, HF_HUB_DISABLE_IMPLICIT_TOKEN; HF_HUB_OFFLINE,
// TRANSFORMERS_OFFLINE; HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY in upper or lower case. Each
// call reads the variables anew.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/common/hub/url.hpp"

namespace twill::tools::hub {

struct proxy_server {
  url address;
  std::string credentials; ///< "user:password"; empty: none
};

struct proxy_settings {
  std::optional<proxy_server> http, https; ///< the proxies for http and for https addresses
  std::vector<std::string> direct; ///< hosts and domains reached without a proxy; "*": all hosts

  /// The proxy through which `address` is reached; nullptr when it is reached directly.
  const proxy_server* for_address(const url& address) const;
};

struct hub_settings {
  url endpoint; ///< no trailing slash: the target is empty or a path
  std::filesystem::path cache;
  std::string token; ///< empty: none
  bool offline = false;
  proxy_settings proxies;
};

/// Throws client_error when a variable has an invalid value, or when no home folder is known.
hub_settings settings_of_environment();

/// The address in HF_ENDPOINT, or that of Hugging Face's hub when the variable is not set.
url endpoint_of_environment();
/// The cache folder, whether or not it exists; empty when no home folder is known.
std::filesystem::path cache_of_environment();

} // namespace twill::tools::hub
