// notify: reports the state of twilld to the service manager by the protocol of sd_notify(3): that
// the daemon is ready, a line of status, that it reloads or stops, and that the engine makes
// progress.
//
// Without $NOTIFY_SOCKET every function does nothing. Create the object before any other thread
// exists, because the constructor removes the protocol's variables from the environment; afterwards
// any thread may call the functions. A message that cannot be delivered causes one warning in the
// log and no other harm.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "actors/port/engine_port.hpp"

namespace twill::tools {

/// A line of status for an engine that serves: "2 requests running, 0 waiting; 12 % of the KV cache
/// in use".
std::string serving_line(const actors::engine_stats& stats);

class notifier {
public:
  notifier();
  ~notifier();
  notifier(const notifier&) = delete;
  notifier& operator=(const notifier&) = delete;

  /// Reports the progress of loading, and asks the service manager to extend the start-up timeout.
  void loading(std::int64_t done_bytes, std::int64_t total_bytes);
  /// Extends the start-up timeout while a model is fetched. It may be called at any rate: at most
  /// one message per second is sent.
  void fetching();
  void ready();
  /// Reports that a reload has begun; reloaded() reports its end.
  void reloading();
  void reloaded();
  /// Reports that the daemon drains, which takes at most `drain_time`.
  void stopping(std::chrono::milliseconds drain_time);

  /// Reports the status when it has changed. Also reports that the engine makes progress, unless
  /// one step has been running for longer than `scheduler.watchdog`. Call this once per period().
  void report(const actors::engine_port& port);
  std::chrono::milliseconds period() const noexcept { return period_; }

private:
  using clock = std::chrono::steady_clock;

  std::string status_of(const actors::engine_port& port, actors::engine_state state) const;
  void send(const std::string& lines);

  int socket_ = -1;           ///< -1: there is no service manager
  std::vector<char> address_; ///< address of the service manager: a sockaddr_un, cut to its length
  std::chrono::milliseconds period_{1000};
  bool watched_ = false; ///< the service manager kills a daemon that sends nothing for three
                         ///< periods

  std::mutex mutex_; ///< guards the members below and keeps messages in order
  bool ready_ = false;
  bool stopping_ = false;
  bool complained_ = false;
  clock::time_point last_loading_;
  clock::time_point drain_end_;
  std::string status_; ///< the status last sent to the service manager
};

} // namespace twill::tools
