#include "tools/twilld/model_fetcher.hpp"

#include <chrono>
#include <cstdint>
#include <stdexcept>

#include "config/base/log.hpp"
#include "tools/common/hub/fetch_report.hpp"
#include "tools/common/hub/model_argument.hpp"
#include "tools/common/hub/stopped.hpp"

namespace twill::tools {

namespace {

/// Counts an operation in `of` from construction to destruction.
struct counted {
  explicit counted(std::atomic<int>& of) : n(of) { ++n; }
  counted(const counted&) = delete;
  counted& operator=(const counted&) = delete;
  ~counted() { --n; }
  std::atomic<int>& n;
};

} // namespace

actors::model_finder model_fetcher::finder() {
  return {[this](const std::string& configured, const std::function<void()>& takes_long) {
            return hub::is_of_hub(configured) ? fetch(configured, takes_long)
                                              : hub::local_model(configured);
          },
          hub::is_of_hub};
}

/// Polled while bytes arrive, while a file is hashed, and while another process holds the lock.
bool model_fetcher::should_stop() {
  if (stopped_) return true;
  manager_.fetching();
  return false;
}

void model_fetcher::wait_for_turn(std::unique_lock<std::timed_mutex>& turn) {
  while (!turn.try_lock_for(std::chrono::milliseconds(100)))
    if (should_stop()) throw hub::stopped_error();
}

std::string model_fetcher::fetch(const std::string& configured,
                                 const std::function<void()>& takes_long) {
  const counted busy(busy_);
  const auto found_absent = [&] {
    has_begun_ = true;
    if (takes_long) takes_long();
  };
  hub::fetch_report report([](const std::string& line) { log::info(line); });
  std::unique_lock turn(downloading_, std::defer_lock);
  hub::pull_events events;
  events.stopped = [this] { return should_stop(); };
  events.say = [&](const std::string& line) { report.say(line); };
  events.progress = [&](std::int64_t done_bytes, std::int64_t total_bytes) {
    manager_.loading(done_bytes, total_bytes);
    report.show(done_bytes, total_bytes);
  };
  events.begins = [&] {
    found_absent();
    wait_for_turn(turn);
  };
  try {
    // Listing the files on the hub may also take long, so an absent model is reported before that.
    if (!hub::find_in_cache(hub::parse_reference(configured))) found_absent();
    auto path = hub::fetched_model(configured, events);
    if (stopped_) throw hub::stopped_error();
    report.finish();
    return path;
  } catch (const hub::stopped_error&) {
    report.finish();
    if (turn.owns_lock())
      log::info("stopped while " + configured + " was fetched; the next start goes on from there");
    throw std::runtime_error(configured + " was not fetched to its end");
  } catch (...) {
    report.finish();
    throw;
  }
}

} // namespace twill::tools
