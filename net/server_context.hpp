// server_context: what all sessions of one server share. Owned by the server, outlives its
// sessions.
//
// Thread safety: options, engine and keys do not change; the rest are atomics or lock by
// themselves.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "actors/port/engine_port.hpp"
#include "config/options.hpp"
#include "net/api_keys.hpp"
#include "net/connection/session_registry.hpp"
#include "net/protocol/openai/response_store.hpp"

namespace twill::net {

class batch_service;

struct server_context {
  server_context(const config::options& o, actors::engine_port& e)
      : options(o), engine(e), keys(o.server.api_keys) {}

  const config::options options;
  actors::engine_port& engine;
  const api_keys keys;
  response_store responses;
  session_registry sessions;
  std::atomic<std::int64_t> open_sockets{0};
  std::atomic<std::int64_t> body_bytes{0}; ///< unfinished request bodies of all sockets
  std::atomic<bool> draining{false};
  /// Runs a function on a worker thread: tokenizing a long text must not hold up the sockets.
  std::function<void(std::function<void()>)> run_on_worker;
  batch_service* batches = nullptr; ///< the server's; set before its first session
};

} // namespace twill::net
