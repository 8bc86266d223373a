// daemon: runs one engine behind one server until a signal ends them.
//
// run_daemon() blocks the main thread and returns the exit status. It throws on start-up errors,
// and also when the device is lost, because only a new process can use the device again.
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
  std::vector<std::string> paths;        ///< configuration files and folders, read again on SIGHUP
  std::vector<std::string> files;        ///< the files to which `paths` expanded at the start
  std::vector<config::setting> settings; ///< settings of the command line; they override the files,
                                         ///< also after SIGHUP
  std::string address_file; ///< file to which the server's addresses are written once it is ready;
                            ///< may be empty
  std::chrono::steady_clock::time_point started; ///< when the process began
};

/// The signature of actors::start_engine. Tests pass a function that makes an engine of their own.
using engine_starter = std::function<std::unique_ptr<actors::engine>(
    const config::options&, actors::load_progress, actors::model_finder)>;

int run_daemon(daemon_config config, signal_waiter& signals,
               const engine_starter& start = actors::start_engine);

} // namespace twill::tools
