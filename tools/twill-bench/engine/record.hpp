// record: what was observed of one request. Plain data, written by the one thread that ran it.
//
// Times are seconds since the run's start unless the name says otherwise.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace twill::bench {

using clock = std::chrono::steady_clock;

inline double seconds(clock::duration span) {
  return std::chrono::duration<double>(span).count();
}

enum class outcome {
  unsent,      ///< the run ended before its turn
  completed,   ///< the whole reply arrived
  failed,      ///< `error_kind` says how
  cancelled,   ///< dropped on purpose (--request-cancellation-rate)
  interrupted, ///< in flight when the run was stopped by hand
};

struct record {
  outcome how = outcome::unsent;
  double due_s = 0;        ///< when the arrival process wanted it sent
  double start_s = 0;      ///< when it was sent (connecting included)
  double ttft_s = 0;       ///< first content minus start; 0 without content or without streaming
  double latency_s = 0;    ///< last chunk minus start
  double timer_lag_s = -1; ///< how late the client's own timer was; -1: it did not wait on one
  bool has_ttft = false;
  std::vector<float> itl_s; // (n_chunks - 1) gaps between content chunks

  std::int32_t asked_input_tokens = 0;
  std::int32_t asked_output_tokens = 0;
  std::int32_t input_tokens = 0; ///< the server's count when it gives one
  std::int32_t output_tokens = 0;
  bool asked_in_ids = false;
  bool from_usage = false; ///< lengths are the server's, not counted here
  std::int32_t http_status = 0;
  std::string finish_reason;
  std::string error_kind; ///< connect, http_429, timeout, reset, truncated, protocol, server, ...
  std::string error;
  std::string text;              ///< kept only when asked for
  std::vector<std::int32_t> ids; ///< kept with the text, where the backend sends them
};

} // namespace twill::bench
