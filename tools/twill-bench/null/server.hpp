// null server: answers every backend's requests with as many tokens as asked for and no work at
// all, so that a load generator, not a server, is what a run measures.
//
// The constructor binds (std::runtime_error when it can't); run() blocks until stop(), which any
// thread may call. Each of its threads has its own listening socket on the same port.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace twill::bench {

struct null_options {
  std::string host = "127.0.0.1";
  std::uint16_t port = 9000; ///< 0: a free one
  unsigned threads = 1;
  std::chrono::microseconds first_token{0}; ///< from request to the first token
  std::chrono::microseconds token_gap{0};   ///< between tokens
  int tokens_per_write = 1; ///< so many events leave in one piece, as servers that batch do
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
