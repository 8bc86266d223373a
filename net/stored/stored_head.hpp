// stored_head: what a response was asked with, as far as whoever stores it must know. Plain values;
// the functions are pure.
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
  std::string client_id; ///< the HTTP request's id, for log lines
  std::int64_t created_unix_s = 0;
  std::int64_t deadline_unix_ms = 0; ///< when it must be over; 0: there is no limit
  std::uint64_t seed = 0;            ///< of its draws
  std::int32_t n_choices = 1;
  bool background = false; ///< it goes on when nobody reads it
  /// What its protocol needs to make the request and the reply anew.
  value asked;
};

/// As one JSON object.
std::string write_head(const stored_head& head);
/// Nothing where the text is no such object.
std::optional<stored_head> read_head(std::string_view text);

} // namespace twill::net
