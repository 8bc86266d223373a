// api_keys: creates, looks up and checks the API keys of clients. Immutable after construction, so
// any thread may use an object.
//
// The SHA-256 digest of a client's key is compared with the digests of all known keys, also after
// one has matched, and each comparison takes constant time. The time taken therefore reveals
// neither how much of the client's key is right nor which known key it equals.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/tenants.hpp"

namespace twill::net {

/// Returns KEY from the Authorization header "Bearer KEY", or an empty view when the header has
/// another form.
std::string_view bearer_key(std::string_view authorization);

/// The subprotocols that a WebSocket client offers. A browser cannot send headers with a handshake,
/// so a subprotocol may carry the API key: "openai-insecure-api-key.KEY".
struct offered_subprotocols {
  std::string_view key;
  std::string_view named; ///< the first subprotocol that is not a key; the server's handshake reply
                          ///< selects it
};
offered_subprotocols read_subprotocols(std::string_view header);

/// A new key: "twk_" followed by 43 characters that encode 256 random bits.
std::string make_key();
/// The SHA-256 digest as 64 lower-case hex digits.
std::string digest_of(std::string_view key);

class api_keys {
public:
  /// `keys` are the keys of `server.api_keys`; each key is a tenant of its own. The keys of
  /// `tenants` are known only by their digests. If there are no keys at all, every client is
  /// admitted, unless `closed` is set.
  explicit api_keys(const std::vector<std::string>& keys,
                    const std::vector<config::tenant_options>& tenants = {}, bool closed = false);

  /// Returns the name of the tenant that `key` belongs to: "" when no keys are needed, "key-" and
  /// the first 12 hex digits of the digest for one of `keys`, and nothing when the key is unknown.
  std::optional<std::string> tenant_of(std::string_view key) const {
    auto found = holder_of(key);
    if (!found.has_value()) return std::nullopt;
    return std::move(found->tenant);
  }

  /// The tenant that was admitted and the digest of its key. Long-lived connections store it.
  struct holder {
    std::string tenant;
    std::array<unsigned char, 32> digest{}; ///< zeros where no key was needed
  };
  /// Like tenant_of(), and also returns the digest of the key.
  std::optional<holder> holder_of(std::string_view key) const;
  /// Whether these keys still admit `who`, who may have been admitted by the keys before a reload.
  bool admit(const holder& who) const;
  /// Whether the tenant still has a key, or no keys are needed.
  bool has_key(std::string_view tenant) const;
  /// Whether keys of more than one tenant are known.
  bool several_tenants() const { return tenants() > 1; }
  /// The number of tenants that have a key, or 1 where no keys are needed.
  std::size_t tenants() const { return n_tenants_; }

private:
  using known_key = holder;
  std::vector<known_key> known_;
  std::size_t n_tenants_ = 1;
  bool open_ = false;
};

} // namespace twill::net
