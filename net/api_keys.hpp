// api_keys: makes, finds and checks the keys of clients. Immutable after construction, any thread.
//
// Keys are compared as SHA-256 digests in constant time and always all of them, so that the time
// taken says nothing about a key or how many match.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/tenants.hpp"

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

/// A fresh key: "twk_" and 256 random bits as 43 characters.
std::string make_key();
/// The SHA-256 digest as 64 lower-case hex digits.
std::string digest_of(std::string_view key);

class api_keys {
public:
  /// `keys` are those of `server.api_keys`, each a tenant of its own; those of `tenants` are known
  /// by digest. Without any, everybody is let in, unless `closed` is set.
  explicit api_keys(const std::vector<std::string>& keys,
                    const std::vector<config::tenant_options>& tenants = {}, bool closed = false);

  /// The tenant's name: "" when no keys are needed, "key-" and the first 12 hex digits of the
  /// digest for one of `keys`; nothing when the key is unknown.
  std::optional<std::string> tenant_of(std::string_view key) const {
    auto found = holder_of(key);
    if (!found.has_value()) return std::nullopt;
    return std::move(found->tenant);
  }

  /// Who was let in, and by which key; connections that last keep it.
  struct holder {
    std::string tenant;
    std::array<unsigned char, 32> digest{}; ///< zeros where no key was needed
  };
  /// As tenant_of().
  std::optional<holder> holder_of(std::string_view key) const;
  /// Whether these keys, which may be newer ones, still let the holder in.
  bool admit(const holder& who) const;
  /// Whether the tenant still has a key, or needs none.
  bool has_key(std::string_view tenant) const;
  /// Whether keys of more than one tenant are known.
  bool several_tenants() const { return tenants() > 1; }
  /// How many tenants have a key, or 1 where none is needed.
  std::size_t tenants() const { return n_tenants_; }

private:
  using known_key = holder;
  std::vector<known_key> known_;
  std::size_t n_tenants_ = 1;
  bool open_ = false;
};

} // namespace twill::net
