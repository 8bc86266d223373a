// server_process: starts a planned server and waits until it takes requests.
#pragma once

#include <memory>
#include <string>

#include "tools/twill-bench/engine/held_signals.hpp"
#include "tools/twill-bench/versus/child.hpp"
#include "tools/twill-bench/versus/plan.hpp"

namespace twill::bench {

/// Null when a signal came meanwhile. Throws std::runtime_error when something answers there
/// already, when the server ends, or when it is not ready in time; with the end of its log.
std::unique_ptr<child> start_server(const versus_server& server, const std::string& log_path,
                                    const held_signals& signals);

} // namespace twill::bench
