#include "net/stored/stored_api.hpp"

#include <algorithm>
#include <array>

namespace twill::net {
namespace {

struct known_api {
  stored_api api;
  std::string_view prefix, path;
};

// The entries are in the order of the enumeration.
constexpr std::array<known_api, 4> apis = {{
    {stored_api::responses, "resp_", "/v1/responses"},
    {stored_api::chat, "chatcmpl-", "/v1/chat/completions"},
    {stored_api::completions, "cmpl-", "/v1/completions"},
    {stored_api::stream, "strm_", "/v1/stream"},
}};

const known_api& about(stored_api api) {
  return apis[static_cast<std::size_t>(api)];
}

} // namespace

stored_api api_of(std::string_view id) {
  const auto found = std::find_if(apis.begin(), apis.end(),
                                  [&](const known_api& one) { return id.starts_with(one.prefix); });
  return found == apis.end() ? stored_api::responses : found->api;
}

std::string_view id_prefix_of(stored_api api) {
  return about(api).prefix;
}

std::string_view path_of(stored_api api) {
  return about(api).path;
}

std::optional<stored_api> api_at(std::string_view path) {
  const auto found = std::find_if(apis.begin(), apis.end(),
                                  [&](const known_api& one) { return one.path == path; });
  return found == apis.end() ? std::nullopt : std::optional(found->api);
}

std::string how_to_read_on(const std::string& id) {
  const auto api = api_of(id);
  if (api == stored_api::stream)
    return "read on with {\"op\":\"resume\",\"stored\":\"" + id + "\",\"after\":NUMBER}";
  return "read on with GET " + std::string(path_of(api)) + "/" + id +
         "?stream=true&starting_after=NUMBER";
}

} // namespace twill::net
