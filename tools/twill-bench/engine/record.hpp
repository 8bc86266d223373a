// record: what was observed of one request. Plain data, written by the one thread that ran the
// request.
//
// Times are in seconds since the run's start unless the name or the comment says otherwise.
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
  unsent,      ///< the run ended before the request was sent
  completed,   ///< the whole reply arrived
  failed,      ///< `error_kind` says how
  cancelled,   ///< dropped on purpose (--request-cancellation-rate)
  interrupted, ///< in flight when the user stopped the run
};

struct record {
  outcome how = outcome::unsent;
  double due_s = 0;        ///< when the request was due
  double start_s = 0;      ///< when it was sent, before a connection was opened
  double ttft_s = 0;       ///< first content minus start_s; 0 without content or without streaming
  double latency_s = 0;    ///< last chunk minus start_s
  double timer_lag_s = -1; ///< how late the client's timer was; -1: the request waited for no timer
  bool has_ttft = false;
  std::vector<float> itl_s; // (n_chunks - 1) gaps between content chunks

  std::int32_t asked_input_tokens = 0;
  std::int32_t asked_output_tokens = 0;
  std::int32_t input_tokens = 0; ///< the server's count where it gives one
  std::int32_t output_tokens = 0;
  bool asked_in_ids = false;
  bool from_usage = false; ///< lengths come from the server's usage, else the client counted them
  std::int32_t http_status = 0;
  std::string finish_reason;
  std::string error_kind; ///< connect, http_429, timeout, reset, truncated, protocol, server, ...
  std::string error;
  std::string text;              ///< kept only on request
  std::vector<std::int32_t> ids; ///< kept together with the text, where the backend sends ids
};

} // namespace twill::bench
