// server_context: the state that all sessions of one server share. The server owns it, and it
// outlives the sessions.
//
// Thread safety: `options` and `proxies` do not change, and functions and pointers are set before
// the server runs; every other member is atomic or locks a mutex of its own.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "actors/port/engine_port.hpp"
#include "config/base/fair_pool.hpp"
#include "config/options.hpp"
#include "net/connection/input_budget.hpp"
#include "net/connection/open_sockets.hpp"
#include "net/connection/output_budget.hpp"
#include "net/connection/session_registry.hpp"
#include "net/http/forwarded_for.hpp"
#include "net/protocol/codec.hpp"
#include "net/protocol/openai/response_store.hpp"
#include "net/settings.hpp"

namespace twill::net {

class batch_service;
class kv_publisher;
class monitor;
class stored_service;
class tracer;

/// The limit of sockets per client address where the configuration sets none.
inline constexpr std::int64_t standard_per_address = 1000;

/// The limit of sockets at `server.admin_listen`.
inline constexpr std::int64_t max_admin_sockets = 64;

/// The budget for bodies and WebSocket messages being received, over all sockets, is this many
/// times the largest size of one.
inline constexpr std::int64_t messages_in_budget = 16;

struct server_context {
  server_context(const config::options& o, actors::engine_port& e)
      : options(o), current(o), engine(e), proxies(o.server.trusted_proxies),
        sockets(o.server.max_connections,
                o.server.max_per_address < 0 ? standard_per_address : o.server.max_per_address),
        admin_sockets(max_admin_sockets, 0),
        input(messages_in_budget * std::max(o.server.max_body_bytes, o.server.max_frame_bytes),
              o.server.body_rate_bytes),
        output(o.server.max_output_bytes) {}

  const config::options options; ///< options at the start; only `current` shows what a reload
                                 ///< changes
  current_settings current;
  actors::engine_port& engine;
  const trusted_proxies proxies;
  /// Responses that single sockets remember, and the responses of warm-ups.
  response_store responses;
  /// Looks up a response among all remembered and stored responses. Set before the first session.
  find_response find_previous;
  session_registry sessions;
  open_sockets sockets;
  open_sockets admin_sockets; ///< counted separately, so that clients cannot use up the
                              ///< administrators' sockets
  input_budget input;
  output_budget output;
  std::atomic<bool> draining{false};
  /// Runs long work on bodies (JSON, tokenizing) on a worker thread, because this work must not
  /// delay the sockets. Returns false when too much work is already queued.
  std::function<bool(fair_pool::task)> run_on_worker;
  /// Returns the bytes of the queued worker tasks that have not started.
  std::function<std::int64_t()> waiting_for_worker;
  /// Reads the configuration again. Returns whether that succeeded and, as JSON, what it changed.
  /// The function is empty if server::on_reload() was not called.
  std::function<std::pair<bool, std::string>()> reload;
  batch_service* batches = nullptr; ///< owned by the server; set before the first session
  stored_service* stored = nullptr; ///< like `batches`
  monitor* watched = nullptr;       ///< like `batches`; samples the figures that administrators see
  /// The KV event publisher of the first model; null where KV events are not published.
  const kv_publisher* kv_events = nullptr;
  tracer* traces = nullptr; ///< null where requests are not traced; set before the first session
};

} // namespace twill::net
