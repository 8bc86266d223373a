// load_runner: starts servers and measures loads, one after the other, until a signal comes.
// `sweep`, `campaign` and `versus` all use it.
//
// Its calls block; use it from the main thread. SIGINT and SIGTERM are blocked while the object
// lives: the first one ends the load that runs, and interrupted() then stays true.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/twill-bench/engine/held_signals.hpp"
#include "tools/twill-bench/runs/child.hpp"
#include "tools/twill-bench/runs/figures.hpp"

namespace twill::bench {

struct planned_server;

struct measured_load {
  run_figures figures;
  std::vector<std::string> remarks; ///< about the prompts' lengths
};

class load_runner {
public:
  explicit load_runner(bool show_progress) : show_progress_(show_progress) {}

  /// True once a signal has come or interrupt() was called.
  bool interrupted();
  /// To be called by a caller that ran a load itself and found it interrupted.
  void interrupt() { interrupted_ = true; }

  /// Starts a planned server and waits until it takes requests; null when a signal came. Throws
  /// std::runtime_error, with the end of the server's log, when something answers at the URL
  /// already, when the server ends, or when it is not ready in time.
  std::unique_ptr<child> start(const planned_server& server, const std::string& log_path);

  /// Waits for the server where `options` ask for that, then sends the warm-up requests.
  void warm_up(const serve_options& options);

  /// Sends the warm-up requests and measures the load; absent when a signal came meanwhile. The
  /// progress line begins with `label` and adds `seconds_after` to the time left that it shows.
  std::optional<measured_load> measure(const serve_options& options, const std::string& label,
                                       double seconds_after = 0);

private:
  held_signals signals_;
  bool show_progress_;
  bool interrupted_ = false;
};

} // namespace twill::bench
