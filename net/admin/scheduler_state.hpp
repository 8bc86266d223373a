// scheduler_state: the holders of KV blocks and the number of messages in mailboxes, as JSON
// members of the reply to `GET /admin/state`.
#pragma once

#include <vector>

#include "actors/port/engine_port.hpp"
#include "net/protocol/json/json_writer.hpp"

namespace twill::net {

/// Waits at most one second for the engine's answers. The result lacks answers that take longer.
/// Call it on the worker thread.
std::vector<actors::scheduler_snapshot> ask_schedulers(const actors::engine_port& engine);

/// Adds the members `schedulers` and `mailboxes` to the JSON object that is being written.
void add_scheduler_state(json_writer& json,
                         const std::vector<actors::scheduler_snapshot>& snapshots,
                         const std::vector<actors::mailbox_depth>& mailboxes);

} // namespace twill::net
