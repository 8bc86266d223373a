// bench_server: an in-process server that answers by script, with known delays, ends and errors.
//
// It listens on a free loopback port and runs on its own thread until it is destroyed. It
// implements the HTTP and WebSocket dialects of twill-bench's backends only as far as measuring
// needs.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/tools/bench_dialects.hpp"

namespace twill::tests {

struct server_counts {
  std::atomic<int> connections{0};
  std::atomic<int> requests{0};  ///< generations that were requested
  std::atomic<int> cancels{0};   ///< cancel messages
  std::atomic<int> dropped{0};   ///< generations whose client disconnected
  std::atomic<int> most_open{0}; ///< most generations at one moment
};

/// When the server received and sent one generation, by the same clock as the client's.
struct sent_times {
  std::chrono::steady_clock::time_point received;
  std::vector<std::chrono::steady_clock::time_point> chunks; ///< when each was written
};

class bench_server {
public:
  /// `plan(i)` is the script of the i-th generation.
  explicit bench_server(std::function<script(int)> plan, bool with_tokenizer = true);
  ~bench_server();

  std::string url() const;
  const server_counts& counts() const;
  /// Bodies and messages of the generations, in order of arrival.
  std::vector<std::string> bodies() const;
  /// The times of each streamed generation, in order of arrival.
  std::vector<sent_times> log() const;

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace twill::tests
