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
  std::string state; ///< "ready", "asleep", ...; only administrators are told
  std::int64_t context_tokens = 0;
  std::int64_t created_unix_s = 0; ///< when it was loaded
};

/// Gauges of now and counters since the start of one model.
struct model_load {
  double running = 0, waiting = 0;
  double kv_used_blocks = 0, kv_blocks = 0;
  double prompt_tokens = 0, generated_tokens = 0;
  double finished = 0, failed = 0;
  double first_token_s = 0, first_tokens = 0;     ///< sum and count
  double between_s = 0, between = 0;              ///< sum and count of times between tokens
  double looked_up_tokens = 0, cached_tokens = 0; ///< of prompts, in the prefix cache
  device_memory memory;
};

/// What one tenant asks of one model: gauges of now and counters since the start.
struct tenant_load {
  double running = 0, waiting = 0;
  double prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
  double finished = 0, failed = 0;
  double first_token_s = 0, first_tokens = 0; ///< sum and count
};

struct daemon_view {
  std::string url, version;
  std::string name; ///< `server.name`; empty: it has none
  bool ready = false;
  std::string state;   ///< "ready", "loading", "draining" or "not ready"
  std::string why_not; ///< it is not ready, or lists no models
  std::vector<model_view> models;
  std::map<std::string, model_load> loads; ///< by id
  /// By tenant and model; only administrators are told.
  std::map<std::pair<std::string, std::string>, tenant_load> tenants;
  process_memory process;
  double open_sockets = 0;
  std::chrono::steady_clock::time_point at;
};

/// What answers is no daemon.
class not_twilld : public client_error {
  using client_error::client_error;
};

/// The time that one look may take, and a token with which any thread can end the look early.
struct look_limits {
  std::chrono::milliseconds whole{40000};
  std::stop_token stop;
};

/// Throws client_error when nothing answers, and not_twilld when no daemon does. What a daemon
/// refuses to tell stays empty.
daemon_view look_at(const endpoint& where, const look_limits& limits = {});

/// Like look_at(), but asks the listener of `server.admin_listen`, which also lists the tenants and
/// the models that are not loaded.
daemon_view look_as_administrator(const endpoint& administrator);

/// Numbers of a scrape, put into `view`. Pure.
void take_metrics(std::string_view scrape, daemon_view& view);

/// The list of /v1/models or of /admin/models, put into `view`; false when the text is no such
/// list. Pure.
bool take_models(std::string_view body, daemon_view& view);

/// One screen about `now`; `before`, an earlier look, gives the rates.
std::string status_text(const daemon_view& now, const daemon_view& before, std::int64_t unix_s);

/// The memory of all models.
device_memory memory_of_models(const daemon_view& view);

/// A table with one row for each model, and one for each tenant that is known, for a terminal
/// `columns` wide.
std::string top_text(const daemon_view& now, const daemon_view& before, std::size_t columns);

} // namespace twill::tools
