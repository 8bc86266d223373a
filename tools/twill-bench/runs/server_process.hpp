// server_process: starts a planned server and waits until it takes requests.
#pragma once

#include <memory>
#include <string>

#include "tools/twill-bench/engine/held_signals.hpp"
#include "tools/twill-bench/runs/child.hpp"
#include "tools/twill-bench/runs/plan.hpp"

namespace twill::bench {

/// Returns null when a signal came meanwhile. Throws std::runtime_error, with the end of the
/// server's log, when something answers at the URL already, when the server ends, or when it is not
/// ready in time.
std::unique_ptr<child> start_server(const planned_server& server, const std::string& log_path,
                                    const held_signals& signals);

} // namespace twill::bench
