// scheduler_state: the sequences that hold KV blocks, and the number of messages that wait in the
// mailboxes of the engine's actors, as JSON members of the reply to `GET /admin/state`.
#pragma once

#include <vector>

#include "actors/port/engine_port.hpp"
#include "net/protocol/json/json_writer.hpp"

namespace twill::net {

/// Waits at most one second for the answer of each scheduler. The result is empty if the answers
/// take longer. Call it on the worker thread.
std::vector<actors::scheduler_snapshot> ask_schedulers(const actors::engine_port& engine);

/// Adds the members `schedulers` and `mailboxes` to the JSON object that is being written.
void add_scheduler_state(json_writer& json,
                         const std::vector<actors::scheduler_snapshot>& snapshots,
                         const std::vector<actors::mailbox_depth>& mailboxes);

} // namespace twill::net
