#include "models/offload/plan/simulation.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>

namespace twill::models::offload {
namespace {

using enum offload_resource;

/// The timeline of one resource (a processor, a link or a disk). A transfer or computation that can
/// begin early may be placed before one that was issued earlier but must still wait, because
/// transfers of weights and transfers of tasks have separate queues.
class lane {
public:
  /// Reserves `seconds` at the earliest free time at or after `ready_s` and returns the start.
  double take(double ready_s, double seconds) {
    for (std::size_t i = 0; i < gaps_.size(); ++i) {
      const gap g = gaps_[i];
      const double start = std::max(g.start_s, ready_s);
      if (start + seconds > g.end_s) continue;
      gaps_.erase(gaps_.begin() + static_cast<std::ptrdiff_t>(i));
      leave(start + seconds, g.end_s);
      leave(g.start_s, start);
      return start;
    }
    const double start = std::max(end_s_, ready_s);
    leave(end_s_, start);
    end_s_ = start + seconds;
    return start;
  }

private:
  struct gap {
    double start_s = 0;
    double end_s = 0;
  };
  void leave(double start_s, double end_s) {
    if (end_s <= start_s) return;
    gaps_.push_back({start_s, end_s});
    if (gaps_.size() > most_gaps) gaps_.pop_front();
  }

  static constexpr std::size_t most_gaps = 64; ///< no use can reach older gaps
  std::deque<gap> gaps_;
  double end_s_ = 0;
};

class player {
public:
  player(const offload_model& model, const machine_description& machine,
         const offload_policy& policy, const offload_workload& work, std::size_t max_spans)
      : cost_(model, machine, policy, work), policy_(policy), work_(work),
        n_layers_(model.n_layers),
        splits_(policy.host_attention && policy.kv.away() > 0 && !machine.one_processor),
        max_spans_(max_spans), cursor_(shape_of(work, policy, model.n_layers)) {
    schedule_cursor ahead = cursor_;
    while (ahead.next()) {
    }
    n_runs_ = ahead.rounds() * n_layers_;
    arrived_.assign(static_cast<std::size_t>(n_runs_), 0);
    computed_ = arrived_;
  }

  simulation_result play() {
    // Before the first task, as many layers are fetched as fit in the ring beside the layer in use.
    for (std::int64_t run = 0; run < std::min<std::int64_t>(policy_.layers_in_ring() - 1, n_runs_);
         ++run)
      fetch(run, 1);
    std::int32_t layer = -1;
    std::int64_t round = 0;
    while (const auto next = cursor_.next()) {
      const bool new_layer = std::exchange(layer, next->layer) != next->layer;
      const bool new_round = std::exchange(round, cursor_.rounds()) != cursor_.rounds();
      if (new_layer || new_round) ++run_;
      fetch(run_ + policy_.layers_in_ring() - 1, 1.0 / static_cast<double>(cursor_.alive()));
      run_task(*next);
    }
    if (held_) finish(*held_);
    out_.tokens_per_s = static_cast<double>(prompts()) * work_.gen_len / out_.total_s;
    return std::move(out_);
  }

private:
  /// A task whose attention runs on the host.
  struct held_task {
    schedule_task at;
    std::int64_t run = 0;
    double ready_s = 0;
    double device_s = 0;
    task_cost cost;
  };

  std::int64_t prompts() const {
    return work_.n_prompts > 0 ? work_.n_prompts
                               : n_batches_of(work_, policy_) * policy_.batch_size;
  }

  bool last_layer(std::int64_t run) const { return run % n_layers_ == n_layers_ - 1; }

  double use(offload_resource what, const schedule_task& at, double ready_s, double seconds) {
    if (seconds <= 0) return ready_s;
    const double start = lanes_[static_cast<std::size_t>(what)].take(ready_s, seconds);
    out_.busy[what] += seconds;
    out_.total_s = std::max(out_.total_s, start + seconds);
    if (out_.spans.size() < max_spans_) out_.spans.push_back({what, at, start, start + seconds});
    return start + seconds;
  }

  /// A run is one layer of one round (one sweep over the layers); runs are numbered through all
  /// rounds. Fetches the share `piece` of the weights of run `run` into the buffer of the run that
  /// was `layers_in_ring` runs earlier, as soon as that earlier run has ended.
  void fetch(std::int64_t run, double piece) {
    if (run >= n_runs_) return;
    resource_seconds seconds = cost_.fetch();
    if (last_layer(run)) seconds.add(cost_.outer_fetch());
    const auto at = static_cast<std::size_t>(run);
    const std::int64_t before = run - policy_.layers_in_ring();
    const double slot_free = before < 0 ? 0 : computed_[static_cast<std::size_t>(before)];
    const schedule_task whole{static_cast<std::int32_t>(run / n_layers_),
                              static_cast<std::int32_t>(run % n_layers_), -1};
    const double read = use(disk_read, whole, slot_free, seconds[disk_read] * piece);
    use(device, whole, slot_free, seconds[device] * piece); // where the same cores copy and compute
    arrived_[at] = std::max(arrived_[at], use(h2d, whole, read, seconds[h2d] * piece));
  }

  void run_task(const schedule_task& at) {
    task_cost cost = at.token == 0 ? cost_.prefill() : cost_.decode(work_.prompt_len + at.token);
    if (at.layer == n_layers_ - 1) cost.seconds.add(cost_.outer());
    auto& stored = stored_[at.batch];
    stored.resize(static_cast<std::size_t>(n_layers_), 0);
    if (held_ && held_->at.batch == at.batch) finish(*std::exchange(held_, {}));

    const double buffer_free =
        recent_.size() < static_cast<std::size_t>(policy_.kv_buffers) ? 0 : recent_.front();
    const double load_ready = std::max(buffer_free, stored[static_cast<std::size_t>(at.layer)]);
    const double read = use(disk_read, at, load_ready, cost.seconds[disk_read]);
    const bool on_host = splits_ && at.token > 0;
    const double loaded = use(h2d, at, read, cost.seconds[h2d]);
    const double ready =
        std::max({loaded, done_[at.batch], arrived_[static_cast<std::size_t>(run_)]});
    if (!on_host) {
      finish({at, run_, ready, cost.seconds[device], cost});
      return;
    }
    // The host computes this task's attention while the device continues the task before.
    const double before = use(device, at, ready, cost.device_before_s);
    const double after_s = cost.seconds[device] - cost.device_before_s;
    const double attended = use(host, at, std::max(before, read), cost.seconds[host]);
    if (held_) finish(*std::exchange(held_, {}));
    held_ = held_task{at, run_, attended, after_s, cost};
  }

  void finish(const held_task& schedule_task) {
    const double end = use(device, schedule_task.at, schedule_task.ready_s, schedule_task.device_s);
    auto& computed = computed_[static_cast<std::size_t>(schedule_task.run)];
    computed = std::max(computed, end);
    done_[schedule_task.at.batch] = end;
    recent_.push_back(end);
    if (recent_.size() > static_cast<std::size_t>(policy_.kv_buffers)) recent_.pop_front();
    const double down = use(d2h, schedule_task.at, end, schedule_task.cost.seconds[d2h]);
    const double written =
        use(disk_write, schedule_task.at, down, schedule_task.cost.seconds[disk_write]);
    auto& stored = stored_[schedule_task.at.batch];
    stored[static_cast<std::size_t>(schedule_task.at.layer)] = written;
    if (schedule_task.at.token == work_.gen_len - 1 && schedule_task.at.layer == n_layers_ - 1) {
      stored_.erase(schedule_task.at.batch);
      done_.erase(schedule_task.at.batch);
    }
  }

  offload_cost cost_;
  const offload_policy& policy_;
  const offload_workload& work_;
  std::int32_t n_layers_;
  bool splits_;
  std::size_t max_spans_;
  schedule_cursor cursor_;
  std::int64_t n_runs_ = 0;
  std::int64_t run_ = -1;
  std::array<lane, n_offload_resources> lanes_;
  std::vector<double> arrived_;                   ///< when a run's weights are on the device
  std::vector<double> computed_;                  ///< when a run's buffer may be filled again
  std::unordered_map<std::int32_t, double> done_; ///< by micro-batch
  std::unordered_map<std::int32_t, std::vector<double>> stored_; ///< by micro-batch and layer
  std::deque<double> recent_; ///< when the buffers of the last tasks become free
  std::optional<held_task> held_;
  simulation_result out_;
};

} // namespace

simulation_result simulate(const offload_model& model, const machine_description& machine,
                           const offload_policy& policy, const offload_workload& work,
                           std::size_t max_spans) {
  return player(model, machine, policy, work, max_spans).play();
}

} // namespace twill::models::offload
