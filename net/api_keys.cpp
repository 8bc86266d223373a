#include "net/api_keys.hpp"

#include <algorithm>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <set>

#include "config/base/assert.hpp"

namespace twill::net {
namespace {

using key_digest = std::array<unsigned char, 32>;
constexpr std::size_t short_digits = 12;

key_digest sha256(std::string_view text) {
  key_digest hashed{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), hashed.data());
  return hashed;
}

std::string to_hex(const key_digest& bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string hex;
  for (const auto byte : bytes) {
    hex += digits[byte >> 4];
    hex += digits[byte & 15];
  }
  return hex;
}

/// `hex` is 64 lower-case hex digits.
key_digest from_hex(std::string_view hex) {
  const auto value_of = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  key_digest bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<unsigned char>(value_of(hex[2 * i]) * 16 + value_of(hex[2 * i + 1]));
  return bytes;
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

std::string make_key() {
  static constexpr char digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::array<unsigned char, 32> bytes{};
  TWILL_ASSERT(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1,
               "the system gives no random bytes");
  std::string key = "twk_";
  unsigned waiting = 0; // bits that have not been written as a character yet
  int n_waiting = 0;
  for (const unsigned byte : bytes) {
    waiting = waiting << 8 | byte;
    for (n_waiting += 8; n_waiting >= 6; n_waiting -= 6)
      key += digits[waiting >> (n_waiting - 6) & 63];
  }
  return key += digits[waiting << (6 - n_waiting) & 63];
}

std::string digest_of(std::string_view key) {
  return to_hex(sha256(key));
}

api_keys::api_keys(const std::vector<std::string>& keys,
                   const std::vector<config::tenant_options>& tenants, bool closed)
    : open_(keys.empty() && tenants.empty() && !closed) {
  for (const auto& key : keys) {
    const auto hashed = sha256(key);
    known_.push_back({"key-" + to_hex(hashed).substr(0, short_digits), hashed});
  }
  // If a key stands in both lists, it belongs to the tenant, because the last match counts.
  for (const auto& tenant : tenants)
    for (const auto& hex : tenant.key_sha256)
      known_.push_back({tenant.name, from_hex(hex)});
  std::set<std::string_view> names;
  for (const known_key& one : known_)
    names.insert(one.tenant);
  n_tenants_ = std::max<std::size_t>(names.size(), 1);
}

std::optional<api_keys::holder> api_keys::holder_of(std::string_view key) const {
  if (open_) return holder{};
  const auto given = sha256(key);
  const known_key* found = nullptr;
  for (const auto& one : known_)
    if (CRYPTO_memcmp(given.data(), one.digest.data(), given.size()) == 0) found = &one;
  if (found == nullptr) return std::nullopt;
  return *found;
}

bool api_keys::admit(const holder& who) const {
  return open_ || std::any_of(known_.begin(), known_.end(), [&](const known_key& one) {
           return one.digest == who.digest && one.tenant == who.tenant;
         });
}

bool api_keys::has_key(std::string_view tenant) const {
  return open_ || std::any_of(known_.begin(), known_.end(),
                              [&](const known_key& one) { return one.tenant == tenant; });
}

} // namespace twill::net
