// request_summary: how one request ended and how long its phases took, without any text of its
// prompt or output. A plain value. The request's log line and its trace are made from it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "actors/port/event.hpp"
#include "actors/port/request_error.hpp"
#include "config/sampling.hpp"

namespace twill::actors {

struct request_summary {
  request_id id = 0;
  std::string client_id; ///< X-Request-Id or the protocol's id; empty: none
  std::string tenant;    ///< empty: there are no tenants
  std::string model;     ///< empty: the request was refused before a model was chosen
  usage use;
  /// "stop", "length", "cancelled", or word_of() the error; a string literal
  std::string_view status;
  bool failed = false; ///< `status` is an error
  bool called_tools = false;
  std::chrono::steady_clock::time_point arrived;
  // Durations, each counted from the arrival of the request:
  std::chrono::nanoseconds total{0};
  /// until the first step of the request; none: it was in no step
  std::optional<std::chrono::nanoseconds> queued;
  /// until the first token; none: there was no token
  std::optional<std::chrono::nanoseconds> first_token;
  std::optional<std::chrono::nanoseconds> last_token;
  /// The sampling parameters that applied to the request. The pointer is valid only during the call
  /// that passes the summary. Null if the request was refused before its parameters were known.
  const config::sampling_params* sampling = nullptr;
};

} // namespace twill::actors
