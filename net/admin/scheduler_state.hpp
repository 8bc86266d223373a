// scheduler_state: who holds which KV blocks, and what waits in mailboxes, as JSON members of
// `GET /admin/state`.
#pragma once

#include <vector>

#include "actors/port/engine_port.hpp"
#include "net/protocol/json/json_writer.hpp"

namespace twill::net {

/// Waits for the engine's answer for a second at most; what has not come by then is left out. For
/// the worker thread.
std::vector<actors::scheduler_snapshot> ask_schedulers(const actors::engine_port& engine);

/// Adds `schedulers` and `mailboxes` to the object that is open.
void add_scheduler_state(json_writer& json,
                         const std::vector<actors::scheduler_snapshot>& snapshots,
                         const std::vector<actors::mailbox_depth>& mailboxes);

} // namespace twill::net
