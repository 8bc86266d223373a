// A server on a free loopback port with a scripted engine, running on its own thread.
#pragma once

#include <string>
#include <thread>

#include "net/server.hpp"
#include "tests/net/support/client.hpp"
#include "tests/net/support/scripted_engine.hpp"

namespace twill::testing {

class running_server {
public:
  explicit running_server(config::server_options options = {}, script play = {})
      : running_server(std::move(play), with(std::move(options))) {}
  running_server(script play, config::options all)
      : engine([play](const actors::request&) { return play; }) {
    all.server.listen = {"127.0.0.1:0"};
    server = net::server::bind(all, engine);
    thread_ = std::thread([this] { server->run(); });
  }
  ~running_server() {
    server->stop();
    join();
  }
  std::uint16_t port() const { return server->port(); }
  /// The port of `server.admin_listen`, if that is an address.
  std::uint16_t admin_port() const {
    const auto address = server->admin_address();
    return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  }
  void join() {
    if (thread_.joinable()) thread_.join();
  }

  scripted_engine engine;
  std::unique_ptr<net::server> server;

private:
  static config::options with(config::server_options options) {
    config::options all;
    all.server = std::move(options);
    return all;
  }

  std::thread thread_;
};

/// A request that runs longer than any test.
inline script endless() {
  script s;
  s.repeat = 10'000'000;
  return s;
}

} // namespace twill::testing
