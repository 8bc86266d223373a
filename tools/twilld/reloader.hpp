// reloader: reads the configuration, the keys and the TLS files again, applies the settings that
// may change while the daemon runs, and reports for each key what changed and what needs a restart.
//
// It changes all or nothing: when any of the files has a fault, whatever was in force stays.
// Requests and connections under way are not disturbed.
//
// Threads: any thread may call. The reloader reads files on its own thread, one reload after
// another, because a file system may hang. Calls that need no reload do not wait for that thread,
// and close() abandons the thread if it hangs.
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
  std::vector<config::key_change> needs_restart; ///< also those that earlier reloads told of
  bool tls = false;                              ///< the certificate and its key were read anew

  /// One line for the log, without who asked for the reload.
  std::string line() const;
  /// {"reloaded": true, "changed": [{"key", "before", "after"}], "needs_restart": [...],
  /// "tls_certificate": true, "errors": [...]}
  std::string json() const;
};

class reloader {
public:
  struct parts {
    std::vector<std::string> paths;        ///< files and folders of configuration
    std::vector<config::setting> settings; ///< of the command line; they win over the files
    config::options configured;            ///< as they were loaded at the start
    config::options effective;             ///< as they run: with the keys of `server.keys_file`
    file_reader read;
  };
  /// Told on the reloader's thread; it must be quick and must not call the reloader.
  using report_callback = std::function<void(const reload_report&)>;

  /// Engine and server must outlive it, up to close().
  reloader(parts from, actors::engine& engine, net::server& server);
  ~reloader() { close(); }
  reloader(const reloader&) = delete;
  reloader& operator=(const reloader&) = delete;

  /// Reloads soon. One reload answers all orders that came before it. False, and `callback` is not
  /// called, when too many orders wait for a reload that does not end.
  bool order(report_callback callback);
  /// Reloads, and waits so long for what comes of it. Afterwards the reload goes on.
  reload_report reload(std::chrono::milliseconds patience = std::chrono::seconds(5));
  /// `server.drain_timeout` in force.
  std::chrono::milliseconds drain_timeout() const;

  /// After this call nothing changes and no callback is called. Returns false when the thread still
  /// waits for a file; the thread then no longer touches the engine or the server, and ends with
  /// the process. Idempotent. No other thread may call order() or reload() at the same time, but
  /// calls of reload() that already wait are allowed.
  bool close();

private:
  struct shared;
  static void run(const std::shared_ptr<shared>& all);

  std::shared_ptr<shared> shared_;
  std::thread thread_;
};

} // namespace twill::tools
