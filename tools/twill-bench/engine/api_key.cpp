#include "tools/twill-bench/engine/api_key.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

namespace twill::bench {
namespace {

bool is_authorization(const name_value& header) {
  constexpr std::string_view name = "authorization";
  return std::equal(header.first.begin(), header.first.end(), name.begin(), name.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; });
}

} // namespace

std::vector<name_value> with_api_key(std::vector<name_value> headers, const std::string& given) {
  if (std::any_of(headers.begin(), headers.end(), is_authorization)) return headers;
  std::string key = given;
  for (const char* name : {"TWILL_API_KEY", "OPENAI_API_KEY"})
    if (const char* value = std::getenv(name); key.empty() && value != nullptr) key = value;
  const auto unsendable = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7f; };
  if (std::any_of(key.begin(), key.end(), unsendable))
    throw std::invalid_argument("the API key must be one word without line ends; look at "
                                "--api-key, TWILL_API_KEY and OPENAI_API_KEY");
  if (!key.empty()) headers.emplace_back("Authorization", "Bearer " + key);
  return headers;
}

bool refuses_key(int status) {
  return status == 401 || status == 403;
}

std::string key_advice(const serve_options& options, int status, const std::string& message) {
  const auto& headers = options.headers;
  const bool has_key = std::any_of(headers.begin(), headers.end(), is_authorization);
  std::string out = options.base_url + " answers with status " + std::to_string(status) +
                    (!has_key        ? ": it wants a key, and none was sent"
                     : status == 403 ? ": the key that was sent may not do this"
                                     : ": it does not know the key that was sent");
  if (!message.empty()) out += " (\"" + message + "\")";
  return out + "; " + how_to_give_key;
}

} // namespace twill::bench
