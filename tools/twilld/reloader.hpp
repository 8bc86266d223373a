// reloader: reads the configuration, the keys and the TLS files anew, puts into force what may
// change while the daemon runs, and tells key by key what changed and what needs a restart.
//
// Any thread may call; one reload follows another. It changes all or nothing: when any of the files
// has a fault, whatever was in force stays. Requests and connections under way are not disturbed.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
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
  /// Engine and server must outlive it.
  reloader(parts from, actors::engine& engine, net::server& server)
      : from_(std::move(from)), engine_(engine), server_(server) {}

  reload_report reload();
  /// `server.drain_timeout` in force.
  std::chrono::milliseconds drain_timeout() const {
    const std::lock_guard lock(mutex_);
    return from_.effective.server.drain_timeout;
  }

private:
  mutable std::mutex mutex_; ///< guards `from_`, and is held during a reload
  parts from_;               ///< `configured` and `effective` are what is in force
  actors::engine& engine_;
  net::server& server_;
};

} // namespace twill::tools
