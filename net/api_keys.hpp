// api_keys: finds and checks the keys of clients. Immutable after construction, any thread.
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

/// The key in "Bearer KEY"; empty when there is none.
std::string_view bearer_key(std::string_view authorization);

/// The subprotocols that a WebSocket client offers. A browser cannot send headers with a handshake,
/// so one of them may carry its key: "openai-insecure-api-key.KEY".
struct offered_subprotocols {
  std::string_view key;
  std::string_view named; ///< the first that is no key; it is the one to answer
};
offered_subprotocols read_subprotocols(std::string_view header);

class api_keys {
public:
  explicit api_keys(const std::vector<std::string>& keys);

  /// The tenant's name: "" when no keys are configured, "key-N" for the N-th key; nothing when the
  /// key is unknown.
  std::optional<std::string> tenant_of(std::string_view key) const;

private:
  using digest = std::array<unsigned char, 32>;
  std::vector<digest> digests_;
};

} // namespace twill::net
