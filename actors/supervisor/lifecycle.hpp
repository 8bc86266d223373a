// lifecycle: decides when the supervisor loads, restarts, gives up and tries again. A state machine
// without I/O: its member functions report facts, and take_orders() returns orders.
//
// Pure: no clock, no handles; the caller passes the time. A *generation* is one load of the
// executor; facts about an earlier generation are ignored. A failure is a *strike*, and time spent
// ready takes strikes back. The first restart after a quiet time is immediate; before each later
// one the delay doubles. After `most_strikes` the engine is `failed`: its requests end, and it
// tries again every `most_delay`. A model that could never be loaded is not tried again, and
// nothing is tried after the device was lost.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace twill::actors {

class lifecycle {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using duration = std::chrono::steady_clock::duration;

  static constexpr int most_strikes = 5;
  /// This much time in the ready phase takes one strike back.
  static constexpr std::chrono::seconds forgiving_time{15};

  struct delays {
    duration first; ///< before the second restart in a row
    duration most;  ///< the longest delay before a restart
  };
  enum class phase { loading, ready, restarting, failed, lost, stopped };

  // Orders, which the caller must carry out one after the other.
  /// Start a new executor; the previous one has ended.
  struct start_executor {};
  /// Order the executor to begin this generation (to load the model). With `keep_weights` the
  /// weights stay loaded, and the executor only removes its sequences.
  struct load {
    std::uint64_t generation;
    bool keep_weights;
  };
  /// Start a new grammar compiler.
  struct start_compiler {};
  /// Start a new allocator and a new batcher, with the sizes of the last load.
  struct start_scheduler {};
  /// End the allocator and the batcher, if they are still running.
  struct end_scheduler {};
  /// Report to the batcher that the executor takes steps of this generation (load of the model),
  /// and the sizes (of steps and of the KV cache) that its load has determined.
  struct serve {
    std::uint64_t generation;
  };
  /// Move requests to the new batcher if nothing of them was streamed, and end the others.
  struct move_requests {
    std::string why;
  };
  /// End every request: with the error of a lost device, or otherwise with executor_failed and
  /// `why`.
  struct end_requests {
    std::string why;
    bool device_is_lost = false;
  };
  /// Call woken() at this time.
  struct wake {
    time_point at;
  };
  using order = std::variant<start_executor, load, start_compiler, start_scheduler, end_scheduler,
                             serve, move_requests, end_requests, wake>;

  explicit lifecycle(const delays& d) : delays_(d) {}

  // Facts that the supervisor reports.
  void begin();
  void loaded(std::uint64_t generation, time_point now);
  void load_failed(std::uint64_t generation, const std::string& why, time_point now);
  /// A step failed, and the executor has closed its device.
  void step_failed(std::uint64_t generation, const std::string& why, time_point now);
  /// A step or a load failed because this process can no longer use the device.
  void device_lost(std::uint64_t generation, const std::string& why);
  void executor_ended(const std::string& why, time_point now);
  /// The batcher or the allocator ended.
  void scheduler_ended(const std::string& why, time_point now);
  void compiler_ended();
  void woken(time_point now);
  void stop();

  phase now() const { return phase_; }
  std::uint64_t generation() const { return generation_; }
  /// Why the engine is not ready; empty if it is ready.
  const std::string& detail() const { return detail_; }
  std::vector<order> take_orders();

private:
  /// Whether facts can no longer change anything.
  bool is_over() const { return phase_ == phase::lost || phase_ == phase::stopped; }
  void fail(const std::string& why, time_point now);
  /// Counts a failure; returns false if there were too many.
  bool strike(time_point now);
  void give_up(const std::string& why, time_point now);
  void try_again(time_point now);

  delays delays_;
  phase phase_ = phase::loading;
  std::string detail_ = "loading the model";
  std::vector<order> orders_;
  std::uint64_t generation_ = 0;
  bool executor_alive_ = false;
  bool executor_loading_ = false;
  bool executor_loaded_ = false;
  bool scheduler_alive_ = false;
  bool compiler_alive_ = false;
  bool ever_loaded_ = false;
  int strikes_ = 0;
  time_point ready_since_;
  std::optional<time_point> retry_at_;
};

} // namespace twill::actors
