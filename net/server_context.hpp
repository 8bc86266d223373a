// server_context: what all sessions of one server share. Owned by the server, outlives its
// sessions.
//
// Thread safety: options and proxies do not change; the other members are atomic or lock their own
// mutex.
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

/// Sockets of one client address where the configuration leaves it open.
inline constexpr std::int64_t standard_per_address = 1000;

/// Sockets of `server.admin_listen`.
inline constexpr std::int64_t max_admin_sockets = 64;

/// Bodies and WebSocket messages that are being received, over all sockets: as many of the largest
/// size.
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

  const config::options options; ///< of the start; what a reload changes is in `current` alone
  current_settings current;
  actors::engine_port& engine;
  const trusted_proxies proxies;
  response_store responses; ///< what single sockets remember, and warm-ups
  /// Looks among all that is remembered or stored; set before the first session.
  find_response find_previous;
  session_registry sessions;
  open_sockets sockets;
  open_sockets admin_sockets; ///< counted apart, so that clients cannot shut administrators out
  input_budget input;
  output_budget output;
  std::atomic<bool> draining{false};
  /// Runs long work on bodies (JSON, tokenizing), which must not hold up the sockets, on a thread
  /// of its own; false when too much waits already.
  std::function<bool(fair_pool::task)> run_on_worker;
  std::function<std::int64_t()> waiting_for_worker; ///< bytes of such work that has not begun
  /// Reads the configuration anew: whether that was done, and what it changed, as JSON. Empty where
  /// nobody can.
  std::function<std::pair<bool, std::string>()> reload;
  batch_service* batches = nullptr; ///< the server's; set before its first session
  stored_service* stored = nullptr; ///< as `batches`
  monitor* watched = nullptr;       ///< as `batches`; its figures are sampled for administrators
  /// Of the first model; null where it tells nobody of its KV blocks.
  const kv_publisher* kv_events = nullptr;
  tracer* traces = nullptr; ///< null where nothing is traced; set before the first session
};

} // namespace twill::net
