// api_keys: checks Bearer tokens. Immutable after construction, any thread.
//
// Keys are compared as SHA-256 digests in constant time and always all of them, so that the time
// taken says nothing about a key or how many match.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twill::net {

class api_keys {
public:
  explicit api_keys(const std::vector<std::string>& keys);

  /// The tenant's name: "" when no keys are configured, "key-N" for the N-th key; nothing when the
  /// Authorization header holds no known key.
  std::optional<std::string> tenant_of(std::string_view authorization) const;

private:
  using digest = std::array<unsigned char, 32>;
  std::vector<digest> digests_;
};

} // namespace twill::net
