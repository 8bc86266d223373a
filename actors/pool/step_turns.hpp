// step_turns: decides whose step runs when several models share the cores.
//
// A step uses all cores, so one step runs at a time, in the order in which they were asked for. A
// model has only one step at a time, so while a step waits, every other model runs at most one
// step; and no core is idle while a step waits.
//
// Thread safety: every function takes the one mutex; enter() waits.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "actors/executor/step_runner.hpp"

namespace twill::actors {

class step_turns {
public:
  void enter() {
    std::unique_lock lock(mutex_);
    const std::uint64_t mine = asked_++;
    changed_.wait(lock, [&] { return mine == ended_; });
  }
  void leave() {
    {
      const std::lock_guard lock(mutex_);
      ++ended_;
    }
    changed_.notify_all();
  }
  /// Steps that run or wait.
  std::uint64_t n_under_way() const {
    const std::lock_guard lock(mutex_);
    return asked_ - ended_;
  }

private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t asked_ = 0, ended_ = 0;
};

/// Wraps runners so that their steps take turns.
runner_factory take_turns(runner_factory make, std::shared_ptr<step_turns> turns);

} // namespace twill::actors
