// model_fetcher: resolves `model.path` and `models.*.path`, and fetches models of Hugging Face's
// hub while the engine is loading, so that the daemon answers requests meanwhile. Models are
// fetched one after another. The progress is reported to the log, the terminal and the service
// manager.
//
// Any thread may call the functions. The object must outlive the engine that uses its finder().
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
  /// Makes a fetch in progress end soon. The bytes fetched so far are kept for the next start.
  void stop() { stopped_ = true; }
  /// Whether some model was absent, so that it has to be fetched.
  bool has_begun() const { return has_begun_; }
  /// Whether a model of the hub is being looked up, fetched or checked.
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
