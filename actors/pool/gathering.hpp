// gathering: collects the answers of several engines to one question. Each engine's callback has a
// reference to the gathering. When the last reference is gone, the destructor calls the asker's
// callback with everything that was collected, so an engine that ends without an answer is not
// waited for.
//
// Threads: any thread may change the value. The asker's callback runs on the thread that releases
// the last reference, while that thread holds no mutex of the gathering.
#pragma once

#include <functional>
#include <mutex>
#include <utility>

namespace twill::actors {

template <class Value>
class gathering {
public:
  explicit gathering(std::function<void(Value)> callback) : callback_(std::move(callback)) {}
  ~gathering() { callback_(std::move(value_)); }
  gathering(const gathering&) = delete;
  gathering& operator=(const gathering&) = delete;

  /// Calls `work` with the value, while no other thread changes it.
  template <class Work>
  void change(const Work& work) {
    const std::lock_guard lock(mutex_);
    work(value_);
  }

private:
  std::mutex mutex_;
  Value value_;
  const std::function<void(Value)> callback_;
};

} // namespace twill::actors
