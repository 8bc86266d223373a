// server: the null server. It answers the requests of every backend's API with as many tokens as
// they ask for and computes nothing, so that a run against it measures the load generator and not a
// server.
//
// The constructor binds the port and throws std::runtime_error when it can't. run() blocks until
// stop(), which any thread may call. Each thread of the server has its own listening socket on the
// same port.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace twill::bench {

struct null_options {
  std::string host = "127.0.0.1";
  std::uint16_t port = 9000; ///< 0: any free port
  unsigned threads = 1;
  std::chrono::microseconds first_token{0}; ///< time from the request to the first token
  std::chrono::microseconds token_gap{0};   ///< time between tokens
  int tokens_per_write = 1; ///< this many events are sent in one write, as servers with batching do
};

class null_server {
public:
  explicit null_server(const null_options& options);
  ~null_server();

  std::string url() const;
  void run();
  void stop();

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace twill::bench
