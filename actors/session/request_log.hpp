// request_log: the one line about a request that has ended. Pure; without a word of its prompt or
// its output.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "actors/port/engine_port.hpp"

namespace twill::actors {

struct request_summary {
  request_id id = 0;
  std::string client_id; ///< X-Request-Id; empty: none
  std::string tenant;    ///< empty: there are no tenants
  std::string model;     ///< empty: it was refused before a model was chosen
  usage use;
  std::string_view status; ///< stop, length, cancelled or word_of() its error
  std::chrono::nanoseconds total{0};
  std::optional<std::chrono::nanoseconds> queued;      ///< until its first step, if there was one
  std::optional<std::chrono::nanoseconds> first_token; ///< until its first token, if there was one
};

/// The line for people: "request 7 ended: status=stop tenant=a ...".
std::string text_of(const request_summary& about);
/// The same as members of a JSON object, without braces. Times are in milliseconds.
std::string members_of(const request_summary& about);

/// Writes the line at level info.
void log_request(const request_summary& about);

} // namespace twill::actors
