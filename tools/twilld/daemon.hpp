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
  std::string file;                              ///< read again on SIGHUP; empty: none
  std::vector<config::setting> settings;         ///< win over the file, also after SIGHUP
  std::string address_file;                      ///< gets HOST:PORT once ready; empty: none
  std::chrono::steady_clock::time_point started; ///< of the process, for "ready in"
};

int run_daemon(daemon_config config, signal_waiter& signals);

} // namespace twill::tools
