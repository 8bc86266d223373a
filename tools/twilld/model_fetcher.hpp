// model_fetcher: finds what `model.path` and `models.*.path` name, and fetches models of Hugging
// Face's hub while the engine loads, so that the daemon answers meanwhile. One model is fetched
// after another; how far it is goes to the log, to the terminal and to the service manager.
//
// Any thread. The object must outlive the engine that has its finder().
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>

#include "actors/engine.hpp"
#include "tools/common/hub/pull.hpp"
#include "tools/twilld/notify.hpp"

namespace twill::tools {

class model_fetcher {
public:
  explicit model_fetcher(notifier& manager) : manager_(manager) {}

  actors::model_finder finder();
  /// What is under way ends soon, and what was fetched stays for the next start.
  void stop() { stopped_ = true; }
  /// Whether a model was found not to be here.
  bool has_begun() const { return has_begun_; }
  /// Whether a model of the hub is looked for, fetched or checked.
  bool is_busy() const { return busy_ > 0; }

private:
  std::string fetch(const std::string& configured, const std::function<void()>& takes_long);
  bool should_stop();
  void wait_for_turn(std::unique_lock<std::timed_mutex>& turn);

  notifier& manager_;
  std::timed_mutex downloading_;
  std::atomic<bool> stopped_ = false, has_begun_ = false;
  std::atomic<int> busy_ = 0;
};

} // namespace twill::tools
