// daemon: one engine behind one server, from options until they are told to stop.
//
// run() blocks the main thread. It returns the exit status; start-up errors are thrown.
#pragma once

#include <chrono>
#include <string>
#include <vector>

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

int run_daemon(daemon_config config, signal_waiter& signals);

} // namespace twill::tools
