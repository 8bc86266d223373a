// request_summary: what became of one request, without a word of its prompt or its output. A plain
// value; the log line of a request and its trace are made from it.
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
  std::string client_id; ///< X-Request-Id or the protocol's id; empty: none
  std::string tenant;    ///< empty: there are no tenants
  std::string model;     ///< empty: it was refused before a model was chosen
  usage use;
  std::string_view status; ///< stop, length, cancelled or word_of() its error; a literal
  bool failed = false;     ///< `status` is an error
  bool called_tools = false;
  std::chrono::steady_clock::time_point arrived;
  // From its arrival:
  std::chrono::nanoseconds total{0};
  std::optional<std::chrono::nanoseconds> queued;      ///< until its first step, if there was one
  std::optional<std::chrono::nanoseconds> first_token; ///< until its first token, if there was one
  std::optional<std::chrono::nanoseconds> last_token;
  /// What was in force, for the time of the call that hands the summary out; null where the request
  /// was refused before that was known.
  const config::sampling_params* sampling = nullptr;
};

} // namespace twill::actors
