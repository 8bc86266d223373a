// daemon_view: what a daemon reports about itself on /ready, /v1/models and /metrics, and the text
// that shows the report to a user. look_at() blocks while it sends the requests; the other
// functions are pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/common/endpoint.hpp"
#include "tools/twill/memory_text.hpp"

namespace twill::tools {

struct model_view {
  std::string id, family, quantization;
  std::string state; ///< "ready", "asleep", ...; only administrators receive it
  std::int64_t context_tokens = 0;
  std::int64_t created_unix_s = 0; ///< Unix time in seconds when the model was loaded
};

/// The load of one model: current gauges, and counters since the daemon's start.
struct model_load {
  double running = 0, waiting = 0;
  double kv_used_blocks = 0, kv_blocks = 0;
  double prompt_tokens = 0, generated_tokens = 0;
  double finished = 0, failed = 0;
  double first_token_s = 0, first_tokens = 0;     ///< sum and count of the times to the first token
  double between_s = 0, between = 0;              ///< sum and count of the times between tokens
  double looked_up_tokens = 0, cached_tokens = 0; ///< prompt tokens looked up and found in the
                                                  ///< prefix cache
  device_memory memory;
};

/// The requests of one tenant for one model: current gauges, and counters since the daemon's start.
struct tenant_load {
  double running = 0, waiting = 0;
  double prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
  double finished = 0, failed = 0;
  double first_token_s = 0, first_tokens = 0; ///< sum and count of the times to the first token
};

struct daemon_view {
  std::string url, version;
  std::string name; ///< the value of `server.name`; empty: it has none
  bool ready = false;
  std::string state;   ///< "ready", "loading", "draining" or "not ready"
  std::string why_not; ///< why the daemon is not ready, or lists no models
  std::vector<model_view> models;
  std::map<std::string, model_load> loads; ///< keyed by model id
  /// Keyed by tenant and model; only administrators receive it.
  std::map<std::pair<std::string, std::string>, tenant_load> tenants;
  process_memory process;
  double open_sockets = 0;
  std::chrono::steady_clock::time_point at;
};

/// The server that answers is not a twill daemon.
class not_twilld : public client_error {
  using client_error::client_error;
};

/// Limits of one call of look_at(): the time it may take, and a stop token with which any thread
/// can end it early.
struct look_limits {
  std::chrono::milliseconds whole{40000};
  std::stop_token stop;
};

/// Queries the daemon. Throws client_error when nothing answers, and not_twilld when the server
/// that answers is not twilld. Parts that the daemon refuses to report stay empty.
daemon_view look_at(const endpoint& where, const look_limits& limits = {});

/// Like look_at(), but queries the listener of `server.admin_listen`, which also reports the
/// tenants and the models that are not loaded.
daemon_view look_as_administrator(const endpoint& administrator);

/// Parses a reply of /metrics and stores its numbers in `view`. The function is pure.
void take_metrics(std::string_view scrape, daemon_view& view);

/// Parses a reply of /v1/models or /admin/models and stores its list in `view`. Returns false when
/// `body` is no such reply. The function is pure.
bool take_models(std::string_view body, daemon_view& view);

/// A text of one screen about the daemon. Rates are computed from the counters of `before`, an
/// earlier view, and `now`.
std::string status_text(const daemon_view& now, const daemon_view& before, std::int64_t unix_s);

/// The sum of the memory of all models.
device_memory memory_of_models(const daemon_view& view);

/// A table for a terminal `columns` wide, with one row per model and one per known tenant.
std::string top_text(const daemon_view& now, const daemon_view& before, std::size_t columns);

} // namespace twill::tools
