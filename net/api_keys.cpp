#include "net/api_keys.hpp"

#include <openssl/crypto.h>
#include <openssl/sha.h>

namespace twill::net {
namespace {

std::array<unsigned char, 32> sha256(std::string_view text) {
  std::array<unsigned char, 32> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return digest;
}

bool starts_with_bearer(std::string_view text) {
  constexpr std::string_view scheme = "bearer ";
  if (text.size() < scheme.size()) return false;
  for (std::size_t i = 0; i < scheme.size(); ++i)
    if ((text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i]) != scheme[i]) return false;
  return true;
}

} // namespace

api_keys::api_keys(const std::vector<std::string>& keys) {
  for (const auto& key : keys)
    digests_.push_back(sha256(key));
}

std::optional<std::string> api_keys::tenant_of(std::string_view authorization) const {
  if (digests_.empty()) return std::string();
  if (!starts_with_bearer(authorization)) return std::nullopt;
  auto token = authorization.substr(7);
  while (!token.empty() && token.front() == ' ')
    token.remove_prefix(1);
  const auto given = sha256(token);
  std::optional<std::string> tenant;
  for (std::size_t i = 0; i < digests_.size(); ++i)
    if (CRYPTO_memcmp(given.data(), digests_[i].data(), given.size()) == 0)
      tenant = "key-" + std::to_string(i + 1);
  return tenant;
}

} // namespace twill::net
