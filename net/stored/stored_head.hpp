// stored_head: the properties of a request for a stored response that the storage code needs. Plain
// values; the functions are pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "config/base/value.hpp"

namespace twill::net {

struct stored_head {
  std::string id;
  std::string tenant;
  std::string model;
  std::string client_id; ///< the X-Request-Id of the HTTP request, for log lines
  std::int64_t created_unix_s = 0;
  std::int64_t deadline_unix_ms = 0; ///< when the response must have ended; 0: no limit
  /// Seed of the random number generator that samples the tokens.
  std::uint64_t seed = 0;
  std::int32_t n_choices = 1;
  bool background = false; ///< the response continues when no client reads it
  /// What the endpoint's protocol needs to build the request and the reply again.
  value asked;
};

/// Writes the head as one JSON object.
std::string write_head(const stored_head& head);
/// Returns nothing if `text` is not such a JSON object.
std::optional<stored_head> read_head(std::string_view text);

} // namespace twill::net
