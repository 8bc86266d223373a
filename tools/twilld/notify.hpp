// notify: what twilld tells the service manager that started it, by the protocol of sd_notify(3):
// that it answers requests, one line of status, that it reloads or stops, and that the engine makes
// progress.
//
// Without $NOTIFY_SOCKET every function does nothing. Make the object before any other thread
// exists, because it removes the variables of the protocol from the environment; afterwards any
// thread may call. A message that cannot be delivered costs one warning in the log, and never the
// daemon.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "actors/port/engine_port.hpp"

namespace twill::tools {

/// One line about an engine that serves: "2 requests running, 0 waiting; 12 % of the KV cache in
/// use".
std::string serving_line(const actors::engine_stats& stats);

class notifier {
public:
  notifier();
  ~notifier();
  notifier(const notifier&) = delete;
  notifier& operator=(const notifier&) = delete;

  /// Each call that says that more was loaded gives the start more time.
  void loading(std::int64_t done_bytes, std::int64_t total_bytes);
  /// Gives the start more time while a model is fetched; call it as often as you like.
  void fetching();
  void ready();
  /// A reload is under way until reloaded().
  void reloading();
  void reloaded();
  /// The daemon drains, for `drain_time` at most.
  void stopping(std::chrono::milliseconds drain_time);

  /// Tells the status, and that the engine makes progress unless a step has been under way for
  /// longer than `scheduler.watchdog`. Call it once in every period().
  void report(const actors::engine_port& port);
  std::chrono::milliseconds period() const noexcept { return period_; }

private:
  using clock = std::chrono::steady_clock;

  std::string status_of(const actors::engine_port& port, actors::engine_state state) const;
  void send(const std::string& lines);

  int socket_ = -1;           ///< -1: there is no service manager
  std::vector<char> address_; ///< of the service manager: a sockaddr_un, cut to its length
  std::chrono::milliseconds period_{1000};
  bool watched_ = false; ///< the manager ends a daemon that is silent for three periods

  std::mutex mutex_; ///< guards what follows, and the order of the messages
  bool ready_ = false;
  bool stopping_ = false;
  bool complained_ = false;
  clock::time_point last_loading_;
  clock::time_point drain_end_;
  std::string status_; ///< as the manager knows it
};

} // namespace twill::tools
