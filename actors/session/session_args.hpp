// session_args: what a session is created with, and what it shares with the port.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "actors/detail/token_budget.hpp"
#include "actors/messages.hpp"
#include "config/options.hpp"

namespace twill::actors {

/// State of a request that port and session share.
struct request_control {
  /// Once this is set, no further event is delivered.
  std::atomic<bool> silenced{false};
  /// The last event has been delivered, or is being delivered.
  std::atomic<bool> ended{false};
  /// Tokens that were charged to the tenant's budget and are not settled yet; for a ledger.
  std::atomic<std::int64_t> charged_tokens{0};
};

/// All arguments with which a session is created.
struct session_args {
  request_id id = 0;
  actors::request request;
  event_callback on_event;
  std::shared_ptr<request_control> control;
  config::limit_options limits;
  std::int64_t prompt_bytes = 0;
  steady_clock::time_point submitted;
  std::shared_ptr<const config::tenant_options> tenant; ///< null if the tenant has no limits
  std::shared_ptr<token_budget> budget; ///< the tenant's token budget; null if it has none
  std::uint64_t cache_scope = 0;
};

} // namespace twill::actors
