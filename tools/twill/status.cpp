// `twill status`: shows one screen about a daemon, and has an exit status for scripts.
#include <CLI/CLI.hpp>

#include <chrono>
#include <ctime>
#include <memory>
#include <thread>

#include "tools/common/terminal.hpp"
#include "tools/twill/commands.hpp"
#include "tools/twill/daemon_view.hpp"
#include "tools/twill/request_flags.hpp"

namespace twill::tools {
namespace {

constexpr int status_not_ready = 1;
constexpr int status_no_daemon = 2;

struct status_options {
  server_flags server;
  bool quiet = false;
  double wait_s = 0;
};

/// Queries the daemon until it is ready or `wait_s` has passed, and returns the last view. Throws
/// client_error when the last query got no answer.
daemon_view look_until_ready(const endpoint& where, double wait_s) {
  constexpr auto pause = std::chrono::milliseconds(100);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(wait_s);
  for (;;) {
    const bool last = std::chrono::steady_clock::now() + pause >= end;
    try {
      auto view = look_at(where);
      if (view.ready || last) return view;
    } catch (const client_error&) {
      if (last) throw;
    }
    std::this_thread::sleep_for(pause);
  }
}

int run_status(const status_options& options) {
  const auto where = options.server.where();
  daemon_view before;
  try {
    before = look_until_ready(where, options.wait_s);
  } catch (const client_error& error) {
    if (!options.quiet) {
      std::fprintf(stderr, "%s %s\n", painted(stream::error, ink::red, "twill:").c_str(),
                   printable(error.what()).c_str());
    }
    return status_no_daemon;
  }
  if (!options.quiet) {
    bool busy = false;
    for (const auto& [id, load] : before.loads)
      busy = busy || load.running > 0;
    daemon_view now = before;
    if (busy) { // a rate needs two views
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      now = look_at(where);
    }
    write_out(status_text(now, before, static_cast<std::int64_t>(std::time(nullptr))));
  }
  return before.ready ? status_ok : status_not_ready;
}

} // namespace

void add_status(CLI::App& root, int& status) {
  auto* command = root.add_subcommand("status", "tell on one screen how a daemon is");
  auto options = std::make_shared<status_options>();
  add_daemon_flags(*command, options->server);
  command->add_flag("--quiet", options->quiet, "print nothing: the exit status tells");
  command
      ->add_option("--wait", options->wait_s,
                   "wait until the daemon is ready, at most this many seconds")
      ->check(CLI::Range(0.0, 86400.0))
      ->type_name("SECONDS");
  command->footer("Exit status: 0 ready, 1 not ready, 2 no answer or wrong usage.");
  command->callback([options, &status] { status = run_status(*options); });
}

} // namespace twill::tools
