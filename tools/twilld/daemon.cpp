#include "tools/twilld/daemon.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

#include "actors/engine.hpp"
#include "config/base/log.hpp"
#include "config/base/scarce_memory.hpp"
#include "config/needs_keys.hpp"
#include "net/server.hpp"
#include "net/tracing/tracer.hpp"
#include "tools/common/progress_bar.hpp"
#include "tools/twilld/collector.hpp"
#include "tools/twilld/file_keeper.hpp"
#include "tools/twilld/keys_file.hpp"
#include "tools/twilld/model_fetcher.hpp"
#include "tools/twilld/named_files.hpp"
#include "tools/twilld/notify.hpp"
#include "tools/twilld/passed_sockets.hpp"
#include "tools/twilld/reloader.hpp"
#include "tools/twilld/user.hpp"

namespace twill::tools {
namespace {

using actors::engine_state;

/// A progress bar is shown from this many bytes of weights on; smaller models load before a bar
/// could be read.
constexpr std::int64_t worth_a_bar = 512 << 20;

/// "http://127.0.0.1:8080" for "127.0.0.1:8080"; addresses such as "unix:/run/twill.sock" are
/// returned unchanged.
std::string url_of(const std::string& address, bool tls) {
  if (address.starts_with("unix:")) return address;
  return (tls ? "https://" : "http://") + address;
}

std::string urls_of(const net::server& server, bool tls) {
  std::string all;
  for (const auto& address : server.addresses())
    all += (all.empty() ? "" : ", ") + url_of(address, tls);
  return all;
}

/// Whether this configuration file contains API keys. A file that cannot be loaded by itself may
/// contain some, so the answer for it is true.
bool has_keys(const std::string& file) {
  const auto alone = config::load_files({file});
  return !alone.ok() || !alone.value().server.api_keys.empty();
}

/// Warns about a server that strangers can use without a key, and about secret files that every
/// user of the machine can read.
void warn_of_open_listeners(const daemon_config& config, const net::listeners& sockets) {
  const auto& server = config.options.server;
  for (const auto& one : sockets.all())
    if (!one.is_local() && !config::needs_keys(config.options))
      log::warn("everybody who reaches " + one.address() +
                " may use this server: set `server.api_keys`, or listen on 127.0.0.1");
  if (!server.tls_key.empty() && others_can_read(server.tls_key))
    log::warn("every user of this machine can read `server.tls_key` " + server.tls_key +
              "; take that right away (chmod o-r)");
  if (server.api_keys.empty()) return;
  for (const auto& file : config.files)
    if (others_can_read(file) && has_keys(file))
      log::warn("every user of this machine can read the API keys in " + file +
                "; take that right away (chmod o-r)");
}

/// Returns the sockets that the service manager passed, or opens those of `server.listen`.
net::listeners open_listeners(const config::server_options& options,
                              const std::optional<user>& wanted, const std::vector<int>& passed) {
  auto sockets =
      passed.empty() ? net::listeners::open(options.listen) : net::listeners::adopt(passed);
  if (wanted.has_value()) sockets.give_to(wanted->id, wanted->group);
  return sockets;
}

/// Opens the socket of `server.admin_listen`; returns no sockets when that is empty.
net::listeners open_admin_listener(const config::server_options& options,
                                   const std::optional<user>& wanted) {
  if (options.admin_listen.empty()) return {};
  auto sockets = net::listeners::open({options.admin_listen}, "server.admin_listen");
  if (wanted.has_value()) sockets.give_to(wanted->id, wanted->group);
  return sockets;
}

/// Opens the socket of `server.agent_listen`; returns no sockets when that is empty.
net::listeners open_agent_listener(const config::server_options& options,
                                   const std::optional<user>& wanted) {
  auto sockets = net::listeners::open_agent(options.agent_listen);
  if (wanted.has_value()) sockets.give_to(wanted->id, wanted->group);
  return sockets;
}

void warn_of_plain_keys(const config::server_options& options, const net::listeners& admin) {
  for (const auto& one : admin.all())
    if (!one.is_local() && options.tls_certificate.empty())
      log::warn("the keys of administrators come to `server.admin_listen` " + one.address() +
                " unencrypted: set `server.tls_certificate`, or listen on unix:/PATH");
}

std::string words_of(const actors::model_info& model) {
  if (model.vocab_size > 0)
    return model.family + ", " + model.quantization + ", context " +
           std::to_string(model.max_model_len);
  if (model.state == actors::model_state::loading) return "which is being fetched";
  return "which cannot be served: " + model.detail;
}

std::string ready_line(const daemon_config& config, const actors::engine_port& port,
                       const std::string& url) {
  const auto took = std::chrono::steady_clock::now() - config.started;
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.2f", std::chrono::duration<double>(took).count());
  std::string names;
  for (const auto& m : port.models())
    names += (names.empty() ? "" : "; ") + m.id + " (" + words_of(m) + ")";
  return std::string("ready in ") + seconds + " s: model " + names + ", " + url;
}

/// The model's path, such as "/models/a.gguf", or the ids of several models.
std::string models_named(const config::options& options) {
  if (options.models.empty()) return options.model.path;
  std::string all;
  for (const auto& model : options.models)
    all += (all.empty() ? "" : ", ") + model.id();
  return all;
}

/// Writes the server's addresses to the file, one per line, for scripts that listen on port 0. The
/// file appears complete, by a rename, after the server has begun to answer requests.
void write_address(const std::string& path, const net::server& server) {
  const std::string whole = path + ".tmp";
  {
    std::ofstream file(whole);
    for (const auto& address : server.addresses())
      file << address << '\n';
  }
  std::error_code error;
  std::filesystem::rename(whole, path, error);
  if (error) log::error("`--address-file` must be writable, got " + path + ": " + error.message());
}

/// Handles signals: SIGHUP reloads the configuration, the first SIGTERM or SIGINT drains the
/// server, the second one stops it. At the third one signal_waiter ends the process.
class signal_handler {
public:
  signal_handler(reloader& files, net::server& server, notifier& manager,
                 std::atomic<bool>& stop_requested)
      : files_(files), server_(server), manager_(manager), stop_requested_(stop_requested) {}

  void operator()(int signal) {
    if (signal == SIGHUP) return reload();
    const char* name = signal == SIGTERM ? "SIGTERM" : "SIGINT";
    stop_requested_ = true;
    switch (++stops_) {
    case 1:
      log::info(std::string(name) + ": draining, streams may finish within " +
                std::to_string(files_.drain_timeout().count() / 1000) +
                " s; a second signal stops at once");
      manager_.stopping(files_.drain_timeout());
      return server_.drain();
    case 2:
      log::info(std::string(name) + " again: stopping now");
      return server_.stop();
    default:
      return;
    }
  }

private:
  /// Requests a reload and returns at once, because a later stop signal must not wait for a file
  /// system that hangs.
  void reload() {
    manager_.reloading();
    const bool ordered = files_.order([this](const reload_report& report) {
      const auto line = "SIGHUP: " + report.line();
      report.faults.empty() ? log::info(line) : log::error(line);
      manager_.reloaded();
    });
    if (ordered) return;
    log::error("SIGHUP: earlier reloads have not ended; a file system may hang");
    manager_.reloaded();
  }

  reloader& files_;
  net::server& server_;
  notifier& manager_;
  std::atomic<bool>& stop_requested_;
  int stops_ = 0;
};

/// Stops signal delivery on scope exit, before the server that the signal handler refers to is
/// destroyed.
struct signal_scope {
  signal_waiter& signals;
  ~signal_scope() { signals.stop(); }
};

/// Stops a fetch on scope exit, before the engine that waits for the fetch is destroyed.
struct fetch_scope {
  model_fetcher& fetcher;
  ~fetch_scope() { fetcher.stop(); }
};

/// Sleeps for `time`, or until a stop is requested.
void sleep_for(std::chrono::milliseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait_for(lock, stop, time, [] { return false; });
}

/// Runs a loop that restores the memory reserve of config/base/scarce_memory.hpp, which failing
/// allocations use up, and reports the daemon's state to the service manager. The loop ends when a
/// stop is requested or the engine has lost its device.
void keep_watch(const std::stop_token& stop, const actors::engine_port& port, notifier& manager) {
  constexpr std::chrono::milliseconds look{100};
  auto due = std::chrono::steady_clock::now();
  while (!stop.stop_requested() && port.state() != engine_state::lost) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= due) {
      restore_memory_reserve();
      manager.report(port);
      due = now + manager.period();
    }
    sleep_for(std::min(look, std::chrono::ceil<std::chrono::milliseconds>(due - now)), stop);
  }
}

/// Stops the server after the engine has lost its device and ended its requests with an error.
/// Clients get a few seconds to read that error. Requests that arrive during this time are aborted.
void end_without_device(const std::stop_token& stop, actors::engine_port& port, net::server& server,
                        notifier& manager) {
  constexpr std::chrono::seconds patience{5};
  manager.stopping(patience);
  server.drain();
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!stop.stop_requested() && std::chrono::steady_clock::now() < end) {
    port.abort_all();
    sleep_for(std::chrono::milliseconds(200), stop);
  }
  if (!stop.stop_requested()) server.stop();
}

/// Ends the process when stopping the engine takes too long. A thread whose disk read hangs can
/// only be ended together with the process.
class last_resort {
public:
  static constexpr std::chrono::seconds patience{10};

  /// `failed`: whether the exit status must report a failure, even if only a fetch delays the stop.
  last_resort(const model_fetcher& fetcher, bool failed)
      : thread_([&fetcher, failed](const std::stop_token& done) {
          sleep_for(patience, done);
          if (done.stop_requested()) return;
          // Ending during a fetch loses nothing: the next start finds and checks the bytes fetched
          // so far.
          const bool fetches = fetcher.is_busy();
          (fetches ? log::warn : log::error)(
              "the engine did not stop within " + std::to_string(patience.count()) +
              " s, because " +
              (fetches ? "the hub or a disk does not answer" : "a step or a load does not end") +
              "; the process ends without it");
          log::flush();
          _exit(fetches && !failed ? EXIT_SUCCESS : EXIT_FAILURE);
        }) {}

private:
  std::jthread thread_;
};

} // namespace

int run_daemon(daemon_config config, signal_waiter& signals, const engine_starter& start) {
  notifier manager;
  const auto& asked = config.options.server;
  if (const auto doubt = allow_open_files(asked.max_connections); !doubt.empty()) log::warn(doubt);
  std::optional<user> wanted;
  if (!asked.user.empty()) wanted = find_user(asked.user);
  const auto passed = passed_sockets();
  net::server_listeners sockets{open_listeners(asked, wanted, passed),
                                open_admin_listener(asked, wanted),
                                open_agent_listener(asked, wanted)};
  warn_of_open_listeners(config, sockets.clients);
  warn_of_plain_keys(asked, sockets.admin);
  // The constructor of file_keeper forks, so it must run before any thread is started.
  std::shared_ptr<file_keeper> keeper; // shared with a reload that hangs
  if (wanted.has_value() && geteuid() == 0) {
    auto kept = config.files;
    kept.insert(kept.end(), {asked.tls_certificate, asked.tls_key, asked.keys_file});
    keeper = std::make_shared<file_keeper>(std::move(kept));
  }
  if (wanted.has_value()) become(*wanted);
  check_address_file(config.address_file);
  const file_reader read = [keeper](const std::string& path) {
    return keeper ? keeper->read(path) : read_file(path, max_file_bytes);
  };
  // A reload compares the new configuration with `config.options`, which therefore keeps the paths
  // as they were configured. Only `effective` gets the path that is found for an empty
  // `model.path`.
  config::options effective = config.options;
  auto tenants = read_keys_file(config.options, read);
  if (!tenants.ok()) throw std::runtime_error(tenants.detail());
  effective.tenants = std::move(tenants).value();
  find_models(effective);
  // The server derives the host names that it accepts from the addresses in `server.listen`, so
  // that option must contain the addresses of the sockets that the service manager passed.
  if (!passed.empty()) effective.server.listen.clear();
  for (std::size_t i = 0; i < passed.size(); ++i)
    effective.server.listen.push_back(sockets.clients.all()[i].address());

  progress_bar bar(false);
  model_fetcher fetcher(manager);
  auto engine = start(
      effective,
      [&](std::int64_t done_bytes, std::int64_t total_bytes) {
        manager.loading(done_bytes, total_bytes);
        if (total_bytes < worth_a_bar) return;
        bar.show(done_bytes, total_bytes);
        if (done_bytes == total_bytes) bar.finish(true);
      },
      fetcher.finder());
  std::optional<fetch_scope> until_ended{std::in_place, fetcher};
  auto& port = engine->port();
  std::optional<net::tracer> traces;
  if (const auto& tracing = effective.tracing; !tracing.endpoint.empty())
    traces.emplace(tracing, post_to(tracing));
  auto server = net::server::start(effective, port, std::move(sockets), read);
  const std::string url = urls_of(*server, !asked.tls_certificate.empty());
  log::info("listening on " + url + ", loading " + models_named(effective));
  if (!asked.admin_listen.empty())
    log::info("the dashboard and the routes of administrators are at " +
              url_of(server->admin_address(), !asked.tls_certificate.empty()));
  if (!asked.agent_listen.empty())
    log::info("load balancers are answered at " + server->agent_address());
  if (traces.has_value()) server->trace_with(*traces);
  std::atomic<bool> stop_requested = false;
  reloader files({config.paths, config.settings, config.options, effective, read}, *engine,
                 *server);
  server->on_reload([&files] {
    const auto report = files.reload();
    const bool done = report.faults.empty();
    (done ? log::info : log::error)("POST /admin/reload: " + report.line());
    return std::pair(done, report.json());
  });
  std::optional<signal_scope> until_stopped{std::in_place, signals};
  signals.start([handler = std::make_shared<signal_handler>(
                     files, *server, manager, stop_requested)](int signal) { (*handler)(signal); });

  std::optional<std::string> failed, lost; // the reason, if the engine failed to start or lost its
                                           // device
  std::jthread watcher([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const auto state = port.state();
      if (state == engine_state::ready) {
        log::info(ready_line(config, port, url));
        if (!config.address_file.empty()) write_address(config.address_file, *server);
        manager.ready();
        keep_watch(stop, port, manager);
        if (port.state() != engine_state::lost) return;
        end_without_device(stop, port, *server, manager);
        lost = port.state_detail(); // set by the engine when it lost the device
        return;
      }
      if (state == engine_state::failed || state == engine_state::lost) {
        failed = port.state_detail();
        return server->stop();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  // With socket activation, clients may have connected before this process started. They wait in
  // the socket's queue until the model is loaded, instead of receiving an error that no model is
  // ready. If the model must be fetched, that would take too long, and the server starts at once.
  const auto must_be_fetched = [&] {
    const bool others_are_open = effective.models.empty() || !port.models().empty();
    return fetcher.has_begun() && others_are_open;
  };
  while (!passed.empty() && port.state() == engine_state::loading && !stop_requested &&
         !must_be_fetched())
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  server->run();
  watcher.request_stop();
  watcher.join();
  until_stopped.reset();
  const bool reload_hangs = !files.close();
  server.reset();
  until_ended.reset();
  {
    const last_resort watch(fetcher, failed.has_value() || lost.has_value());
    engine.reset();
  }
  if (failed) throw std::runtime_error("cannot serve " + models_named(effective) + ": " + *failed);
  if (lost)
    throw std::runtime_error(*lost + "; only another process can use it: start twilld again, as a "
                                     "service manager does by itself");
  log::info("stopped");
  if (reload_hangs) {
    log::warn("a reload has not ended, because a file system does not answer; the process ends "
              "without it");
    log::flush();
    _exit(EXIT_SUCCESS);
  }
  return EXIT_SUCCESS;
}

} // namespace twill::tools
