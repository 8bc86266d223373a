// losing_daemon FILE: twilld on a scripted engine that loses its device. It writes the daemon's
// addresses to FILE; once a line has come on standard input, every step fails.
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include "config/base/log.hpp"
#include "config/base/standard_streams.hpp"
#include "tests/actors/scripted_runner.hpp"
#include "tools/twilld/daemon.hpp"
#include "tools/twilld/signals.hpp"

int main(int argc, char** argv) {
  using namespace twill;
  open_missing_standard_streams();
  if (argc != 2) return 2;
  auto plan = std::make_shared<scripted::script>();
  plan->max_context = 100'000;
  plan->n_blocks = 100'000;
  plan->delay_us = 200;
  tools::daemon_config daemon;
  daemon.options.model.path = "dummy:null"; // which needs no file
  daemon.options.server.listen = {"127.0.0.1:0"};
  daemon.address_file = argv[1];
  daemon.started = std::chrono::steady_clock::now();
  tools::signal_waiter signals;
  log::write_from_thread();
  std::thread([plan] { // detached: its wait for a line cannot be ended
    if (std::string line; std::getline(std::cin, line)) {
      plan->lost = true;
      plan->fail_always = true;
    }
  })
      .detach();
  try {
    return tools::run_daemon(daemon, signals,
                             [&](const config::options& options, const auto&, const auto&) {
                               return actors::start_engine_with(options, scripted::runners(plan));
                             });
  } catch (const std::exception& error) {
    log::write_plain(std::string("twilld: ") + error.what());
    return EXIT_FAILURE;
  }
}
