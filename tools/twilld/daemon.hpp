// daemon: one engine behind one server, from options until they are told to stop.
//
// run_daemon() blocks the main thread. It returns the exit status; start-up errors are thrown, and
// so is the loss of the device, which only another process can use again.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/engine.hpp"
#include "config/load.hpp"
#include "tools/twilld/signals.hpp"

namespace twill::tools {

struct daemon_config {
  config::options options;
  std::vector<std::string> paths; ///< files and folders of configuration, read again on SIGHUP
  std::vector<std::string> files; ///< what they stood for at the start
  std::vector<config::setting>
      settings;             ///< keys of the command line; they win over the file, also after SIGHUP
  std::string address_file; ///< the addresses are written to this file once ready; may be empty
  std::chrono::steady_clock::time_point started; ///< when the process began
};

/// As actors::start_engine, in whose place tests have an engine of their own.
using engine_starter = std::function<std::unique_ptr<actors::engine>(
    const config::options&, actors::load_progress, actors::model_finder)>;

int run_daemon(daemon_config config, signal_waiter& signals,
               const engine_starter& start = actors::start_engine);

} // namespace twill::tools
