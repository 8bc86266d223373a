// reloader: reads the configuration, the keys and the TLS files again, applies the settings that
// may change while the daemon runs, and reports which keys changed and which changes need a
// restart.
//
// A reload changes everything or nothing: when any file has a fault, the previous settings stay in
// force. Running requests and open connections are not disturbed.
//
// Threads: any thread may call the functions. Files are read on the reloader's own thread, one
// reload after another, because a file system may hang. drain_timeout() and order() do not wait for
// that thread, and close() abandons the thread if it hangs.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "actors/engine.hpp"
#include "config/base/read_file.hpp"
#include "config/load.hpp"
#include "config/reload.hpp"
#include "net/server.hpp"

namespace twill::tools {

struct reload_report {
  std::vector<std::string> faults; ///< one line each; when there are any, nothing changed
  std::vector<config::key_change> changed;
  std::vector<config::key_change> needs_restart; ///< includes changes reported by earlier reloads
  bool tls = false;                              ///< whether the TLS certificate and its key were
                                                 ///< reloaded

  /// One line for the log. It does not say who requested the reload.
  std::string line() const;
  /// Returns the report as JSON: {"reloaded": true, "changed": [{"key", "before", "after"}],
  /// "needs_restart": [...], "tls_certificate": true, "errors": [...]}
  std::string json() const;
};

class reloader {
public:
  struct parts {
    std::vector<std::string> paths;        ///< configuration files and folders
    std::vector<config::setting> settings; ///< settings of the command line; they override the
                                           ///< files
    config::options configured;            ///< the configuration as loaded at the start
    config::options effective;             ///< the configuration in force, with the keys of
                                           ///< `server.keys_file`
    file_reader read;
  };
  /// Called on the reloader's thread. It must return quickly and must not call the reloader.
  using report_callback = std::function<void(const reload_report&)>;

  /// `engine` and `server` must stay alive until close() has been called.
  reloader(parts from, actors::engine& engine, net::server& server);
  ~reloader() { close(); }
  reloader(const reloader&) = delete;
  reloader& operator=(const reloader&) = delete;

  /// Requests a reload without waiting for it. One reload serves all requests made before it
  /// starts. Returns false, and never calls `callback`, after close() or when too many requests are
  /// queued because a reload hangs.
  bool order(report_callback callback);
  /// Requests a reload and waits up to `patience` for its report. The report has a fault, and
  /// nothing else, when too many earlier reloads are queued because one hangs, or when the reload
  /// does not finish in time. In the second case the reload continues and may still take effect.
  reload_report reload(std::chrono::milliseconds patience = std::chrono::seconds(5));
  /// The value of `server.drain_timeout` that is in force.
  std::chrono::milliseconds drain_timeout() const;

  /// Ends the reloader: afterwards no setting changes and no callback is called. Returns false when
  /// the thread is still waiting for a file; that thread then no longer uses the engine or the
  /// server, and ends with the process. Idempotent. No other thread may call order() or reload()
  /// while close() runs, but calls of reload() that already wait are allowed.
  bool close();

private:
  struct shared;
  static void run(const std::shared_ptr<shared>& all);

  std::shared_ptr<shared> shared_;
  std::thread thread_;
};

} // namespace twill::tools
