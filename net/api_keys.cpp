#include "net/api_keys.hpp"

#include <algorithm>
#include <openssl/crypto.h>
#include <openssl/sha.h>

namespace twill::net {
namespace {

std::array<unsigned char, 32> sha256(std::string_view text) {
  std::array<unsigned char, 32> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return digest;
}

bool starts_with(std::string_view text, std::string_view lower_prefix) {
  if (text.size() < lower_prefix.size()) return false;
  for (std::size_t i = 0; i < lower_prefix.size(); ++i)
    if ((text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i]) != lower_prefix[i])
      return false;
  return true;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
    text.remove_suffix(1);
  return text;
}

} // namespace

std::string_view bearer_key(std::string_view authorization) {
  constexpr std::string_view scheme = "bearer ";
  return starts_with(authorization, scheme) ? trimmed(authorization.substr(scheme.size()))
                                            : std::string_view();
}

offered_subprotocols read_subprotocols(std::string_view header) {
  constexpr std::string_view key_prefix = "openai-insecure-api-key.";
  offered_subprotocols offered;
  while (!header.empty()) {
    const auto comma = std::min(header.find(','), header.size());
    const auto name = trimmed(header.substr(0, comma));
    header.remove_prefix(std::min(comma + 1, header.size()));
    if (name.starts_with(key_prefix))
      offered.key = name.substr(key_prefix.size());
    else if (offered.named.empty())
      offered.named = name;
  }
  return offered;
}

api_keys::api_keys(const std::vector<std::string>& keys) {
  for (const auto& key : keys)
    digests_.push_back(sha256(key));
}

std::optional<std::string> api_keys::tenant_of(std::string_view key) const {
  if (digests_.empty()) return std::string();
  const auto given = sha256(key);
  std::optional<std::string> tenant;
  for (std::size_t i = 0; i < digests_.size(); ++i)
    if (CRYPTO_memcmp(given.data(), digests_[i].data(), given.size()) == 0)
      tenant = "key-" + std::to_string(i + 1);
  return tenant;
}

} // namespace twill::net
