// settings: where the hub is and where its files lie, by the environment variables of the
// huggingface_hub library, so that both use one cache and one token.
//
// HF_ENDPOINT; HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME; HF_TOKEN, HF_TOKEN_PATH; HF_HUB_OFFLINE;
// HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY in upper or lower case. Read when they are asked
// for.
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
  std::optional<proxy_server> http, https; ///< for addresses of these schemes
  std::vector<std::string> direct; ///< hosts and domains that are reached without one; "*": all

  /// The proxy for this address, if it has one.
  const proxy_server* for_address(const url& address) const;
};

struct hub_settings {
  url endpoint; ///< without a slash at its end: the target is empty or a path
  std::filesystem::path cache;
  std::string token; ///< empty: none
  bool offline = false;
  proxy_settings proxies;
};

/// Throws client_error when a variable has an impossible value, or no home is known.
hub_settings settings_of_environment();

/// The address of HF_ENDPOINT, else of Hugging Face's hub.
url endpoint_of_environment();
/// The folder of the cache, whether or not it exists; empty when no home is known.
std::filesystem::path cache_of_environment();

} // namespace twill::tools::hub
