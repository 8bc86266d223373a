#include "tools/common/hub/settings.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "config/base/read_file.hpp"
#include "tools/common/endpoint.hpp"
#include "tools/common/home_path.hpp"

namespace twill::tools::hub {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::string() : std::string(text);
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool is_true(const std::string& text) {
  const auto word = lower(text);
  return word == "1" || word == "on" || word == "yes" || word == "true";
}

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

fs::path hugging_face_home() {
  if (const auto home = variable("HF_HOME"); !home.empty()) return expand_home(home);
  if (const auto cache = variable("XDG_CACHE_HOME"); !cache.empty())
    return fs::path(cache) / "huggingface";
  if (const auto home = variable("HOME"); !home.empty())
    return fs::path(home) / ".cache" / "huggingface";
  return {};
}

/// Finds the access token as the huggingface_hub library does: in HF_TOKEN or
/// HUGGING_FACE_HUB_TOKEN, else in the file that `hf auth login` writes, unless
/// HF_HUB_DISABLE_IMPLICIT_TOKEN is set.
std::string find_token() {
  constexpr std::int64_t most_bytes = 4096;
  std::string token = trimmed(variable("HF_TOKEN"));
  if (token.empty()) token = trimmed(variable("HUGGING_FACE_HUB_TOKEN"));
  if (token.empty() && !is_true(variable("HF_HUB_DISABLE_IMPLICIT_TOKEN"))) {
    const auto named = variable("HF_TOKEN_PATH");
    const auto path = named.empty() ? hugging_face_home() / "token" : fs::path(expand_home(named));
    const auto text = read_file(path.string(), most_bytes);
    if (text.ok()) token = trimmed(text.value());
  }
  const bool plain =
      std::all_of(token.begin(), token.end(), [](unsigned char c) { return c > 0x20 && c < 0x7f; });
  if (!plain)
    throw client_error("HF_TOKEN must be one word of visible ASCII characters, got others; copy it "
                       "anew from https://huggingface.co/settings/tokens");
  return token;
}

/// Parses the value of the environment variable `name`. A value is an address such as
/// "http://user:password@proxy:3128"; scheme and user are optional.
std::optional<proxy_server> read_proxy(const char* name) {
  auto text = variable(lower(name).c_str());
  if (text.empty()) text = variable(name);
  if (text.empty()) return std::nullopt;
  const auto refused = [&] {
    return client_error(
        std::string(name) +
        " must be the address of an HTTP proxy, http://HOST:PORT; SOCKS and proxies "
        "that speak TLS are not supported");
  };
  if (text.find("://") == text.npos) text.insert(0, "http://");
  std::string credentials;
  const auto host = text.find("://") + 3;
  if (const auto at = text.rfind('@'); at != text.npos && at >= host) {
    const auto decoded = percent_decoded(text.substr(host, at - host));
    if (!decoded) throw refused();
    credentials = *decoded;
    text.erase(host, at + 1 - host);
  }
  const auto address = parse_url(text);
  if (!address || address->tls) throw refused();
  return proxy_server{*address, credentials};
}

proxy_settings find_proxies() {
  proxy_settings found;
  found.https = read_proxy("HTTPS_PROXY");
  found.http = read_proxy("HTTP_PROXY");
  if (!found.https || !found.http) {
    const auto all = read_proxy("ALL_PROXY");
    if (!found.https) found.https = all;
    if (!found.http) found.http = all;
  }
  auto hosts = variable("no_proxy");
  if (hosts.empty()) hosts = variable("NO_PROXY");
  for (std::size_t begin = 0; begin <= hosts.size();) {
    const auto end = std::min(hosts.find(',', begin), hosts.size());
    if (const auto one = lower(trimmed(hosts.substr(begin, end - begin))); !one.empty())
      found.direct.push_back(one);
    begin = end + 1;
  }
  return found;
}

} // namespace

const proxy_server* proxy_settings::for_address(const url& address) const {
  const auto& proxy = address.tls ? https : http;
  if (!proxy) return nullptr;
  for (const auto& entry : direct) {
    if (entry == "*") return nullptr;
    const auto name = entry.substr(
        entry.find_first_not_of("*.") == entry.npos ? 0 : entry.find_first_not_of("*."));
    if (address.host == name || address.host + ":" + address.port == name ||
        address.host.ends_with("." + name))
      return nullptr;
  }
  return &*proxy;
}

url endpoint_of_environment() {
  const auto given = variable("HF_ENDPOINT");
  const auto text = given.empty() ? std::string("https://huggingface.co") : given;
  auto endpoint = parse_url(text);
  if (!endpoint || endpoint->target.find('?') != std::string::npos)
    throw client_error("HF_ENDPOINT must be an http or https address without a user and a query, "
                       "got " +
                       text);
  while (endpoint->target.ends_with('/'))
    endpoint->target.pop_back();
  return *endpoint;
}

fs::path cache_of_environment() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (const auto named = variable(name); !named.empty()) return expand_home(named);
  const auto home = hugging_face_home();
  return home.empty() ? home : home / "hub";
}

hub_settings settings_of_environment() {
  hub_settings found;
  found.endpoint = endpoint_of_environment();
  found.cache = cache_of_environment();
  if (found.cache.empty())
    throw client_error("no folder for the hub's files is known: set HF_HOME or HOME");
  found.cache = fs::absolute(found.cache).lexically_normal();
  found.token = find_token();
  found.offline = is_true(variable("HF_HUB_OFFLINE")) || is_true(variable("TRANSFORMERS_OFFLINE"));
  found.proxies = find_proxies();
  return found;
}

} // namespace twill::tools::hub
