#include "actors/batcher/batcher_actor.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/batcher/batcher_snapshot.hpp"
#include "actors/detail/counted_actor.hpp"
#include "actors/detail/holder_name.hpp"

namespace twill::actors {

namespace {

class batcher_state : public session_sink, public tier_sink {
public:
  const char* name = "batcher";

  void init(batcher_actor::pointer self, const batcher_limits& limits,
            std::shared_ptr<stats_board> stats, kv_allocator_actor kv, offloader_actor offloader,
            std::shared_ptr<const kv_tiers> tiers, std::shared_ptr<batcher_observer> observer) {
    self_ = self;
    observer_ = std::move(observer);
    offloader_ = std::move(offloader);
    tiers_ = std::move(tiers);
    stats_ = std::move(stats);
    kv_ = std::move(kv);
    core_ =
        std::make_unique<batcher_core>(limits, *stats_, *this, tiers_ ? this : nullptr, *observer_);
    stats_->watch_steps_from({});
  }

  void submit(const submit_prompt& prompt, const session_actor& session) {
    handles_.emplace(prompt.request, session);
    core_->submit(prompt);
    pump();
    if (tiers_ && tiers_->has_host() && core_->has_queue()) prefetch(prompt.spec);
  }
  void use(const executor_ready& ready) {
    executor_ = ready.executor;
    core_->executor_ready(ready.generation, ready.limits);
    pump();
  }
  void use(const offloader_actor& offloader) { offloader_ = offloader; }
  /// Answers with a snapshot of the scheduler. Every change of leases (which sequence has
  /// which blocks) has been sent to the allocator, so the leases that it lists are of this
  /// moment.
  void describe(const describe_scheduler& order) {
    const auto now = std::make_shared<scheduler_snapshot>(core_->describe());
    ask(self_, kv_, describe_leases{}).then([now, callback = order.callback](kv_leases& leases) {
      (*callback)(with_blocks(std::move(*now), std::move(leases)));
    });
  }
  /// Answers with a ledger, which lists the resources that each request has taken
  /// (config/base/ledger.hpp). The executor answers between two steps, so its part of the ledger
  /// may be of a later moment than the other parts.
  void account(const ask_ledger& order) {
    const auto all = std::make_shared<ledger>(core_->account());
    all->taken("sessions that the batcher answers", static_cast<std::int64_t>(handles_.size()));
    for (const auto& [request, session] : handles_)
      all->held("sessions that the batcher answers", holder_name(request));
    if (tiers_) tiers_->account(*all);
    ask(self_, kv_, describe_leases{})
        .then(
            [this, all, holders = core_->holders(), callback = order.callback](kv_leases& leases) {
              add_leases(leases, holders, *all);
              account_states(all, callback);
            });
  }
  /// Applies an order to the core, then carries out the actions that follow from it.
  template <class F>
  void apply(F&& order) {
    order(*core_);
    pump();
  }

private:
  /// Adds the sequence states that the executor has to the ledger, and answers with it.
  void account_states(const std::shared_ptr<ledger>& all,
                      const decltype(ask_ledger::callback)& callback) {
    if (!executor_) return (*callback)(std::move(*all));
    ask(self_, executor_, list_states{})
        .then(
            [this, callback, all](const listed_states& states) {
              core_->account(states, *all);
              (*callback)(std::move(*all));
            },
            [callback, all](const caf::error&) { (*callback)(std::move(*all)); });
  }

  /// Sends the ids of departed sequences, then each possible plan with its kv_change, then the
  /// tokens of the last step, then the next block_request.
  void pump() {
    if (auto left = core_->take_departed(); !left.ids.empty() && outstanding_ > 0)
      tell_first(self_, executor_, std::move(left));
    while (const auto plan = core_->plan(steady_clock::now())) {
      send(plan);
      send_change();
    }
    send_tokens();
    send_change();
    if (auto request = core_->take_request())
      ask(self_, kv_, std::move(*request)).then([this](kv_grant& grant) {
        core_->granted(std::move(grant), steady_clock::now());
        pump();
      });
  }

  void send_change() {
    if (auto change = core_->take_change()) tell(self_, kv_, std::move(*change));
  }

  void send(const step_plan_ptr& plan) {
    if (outstanding_++ == 0) stats_->watch_steps_from(steady_clock::now());
    ask(self_, executor_, plan)
        .then([this](const step_result_ptr& result) { on_result(*result); },
              [this, generation = plan->generation](const caf::error&) {
                note_answer();
                core_->step_failed(generation, "the executor is gone");
                pump();
              });
  }

  /// The watchdog of steps runs while at least one step is outstanding.
  void note_answer() {
    stats_->watch_steps_from(--outstanding_ > 0 ? steady_clock::now() : steady_clock::time_point{});
  }

  void on_result(const step_result& result) {
    note_answer();
    if (result.ok)
      core_->step_done(result, steady_clock::now());
    else
      core_->step_failed(result.generation, result.detail, result.device_is_lost);
    pump();
    if (tiers_) publish_tiers();
  }

  /// While the prompt is queued, the blocks of it that are on disk are brought to host memory.
  void prefetch(const sequence_spec& spec) {
    constexpr std::size_t most_tokens = 4096;
    const std::span<const std::int32_t> tokens(*spec.prompt);
    prefetch_blocks order;
    tiers_->held(root_key(spec.cache_scope), tokens.first(std::min(tokens.size(), most_tokens)),
                 steady_clock::now(), order.keys);
    if (!order.keys.empty() && offloader_) tell(self_, offloader_, std::move(order));
  }

  void publish_tiers() {
    const tier_counts now = tiers_->counts();
    const auto bytes = static_cast<std::uint64_t>(tiers_->block_bytes());
    const std::uint64_t refused = core_->fetches_refused();
    stats_->update([&](engine_stats& s) {
      s.kv_tiers = true;
      s.kv_host_blocks = now.host_blocks;
      s.kv_disk_blocks = now.disk_blocks;
      s.kv_host_hits = now.from_host;
      s.kv_disk_hits = now.from_disk;
      s.kv_spilled_bytes = now.spilled * bytes;
      s.kv_host_read_bytes = now.from_host * bytes;
      s.kv_disk_read_bytes = now.from_disk * bytes;
      s.kv_disk_written_bytes = now.written * bytes;
      s.kv_tier_failures = now.failed_reads + now.failed_writes;
      s.kv_tier_dropped = now.dropped;
      s.kv_fetches_refused = refused;
    });
  }

  /// Sends the tokens that wait, each to its session.
  void send_tokens() {
    for (auto& [session, token] : tokens_)
      tell(self_, session, std::move(token));
    tokens_.clear();
  }

  // session_sink
  template <class Message>
  void tell_session(request_id request, Message&& message) {
    send_tokens(); // a session gets its messages in their order
    if (auto i = handles_.find(request); i != handles_.end())
      tell(self_, i->second, std::forward<Message>(message));
  }
  void queued(request_id request) override { tell_session(request, prompt_queued{}); }
  void scored(request_id request, prompt_scored scores) override {
    tell_session(request, std::move(scores));
  }
  void pooled(request_id request, prompt_pooled pooled) override {
    tell_session(request, std::move(pooled));
  }
  void token(request_id request, token_ready token) override {
    if (auto i = handles_.find(request); i != handles_.end())
      tokens_.emplace_back(i->second, std::move(token));
  }
  void failed(request_id request, const request_error& why) override {
    tell_session(request, prompt_failed{why});
  }
  void forgotten(request_id request) override { handles_.erase(request); }

  // tier_sink
  void fetch(fetch_blocks order, std::chrono::milliseconds patience) override {
    tell_later(self_, batcher_actor{self_}, patience, blocks_fetched{order.fetch_id, {}, 0, true});
    if (offloader_) tell(self_, offloader_, std::move(order), batcher_actor{self_});
  }
  void spilled(blocks_spilled blocks) override {
    if (offloader_) tell(self_, offloader_, std::move(blocks));
  }

  batcher_actor::pointer self_ = nullptr;
  std::shared_ptr<stats_board> stats_;
  kv_allocator_actor kv_;
  offloader_actor offloader_;             ///< null: blocks stay on the device
  std::shared_ptr<const kv_tiers> tiers_; ///< for the tiers' counters and for prefetches
  executor_actor executor_;
  std::size_t outstanding_ = 0; ///< plans without an answer so far
  std::shared_ptr<batcher_observer> observer_;
  std::unique_ptr<batcher_core> core_;
  std::unordered_map<request_id, session_actor> handles_;
  /// tokens of the last step, which are sent after the next plan
  std::vector<std::pair<session_actor, token_ready>> tokens_;
};

batcher_actor::behavior_type
batcher_behavior(counted_pointer<batcher_actor, batcher_state, actor_kind::batcher> self,
                 batcher_limits limits, std::shared_ptr<stats_board> stats, kv_allocator_actor kv,
                 offloader_actor offloader, std::shared_ptr<const kv_tiers> tiers,
                 std::shared_ptr<batcher_observer> observer) {
  auto& state = state_of(self);
  state.init(self, limits, std::move(stats), std::move(kv), std::move(offloader), std::move(tiers),
             std::move(observer));
  return {
      [&state](const submit_prompt& prompt, const session_actor& session) {
        state.submit(prompt, session);
      },
      [&state](const finish_choice& order) {
        state.apply([&](batcher_core& c) { c.finish_choice(order.request, order.choice); });
      },
      [&state](release_request order) {
        state.apply([&](batcher_core& c) { c.release(order.request); });
      },
      [&state](pause_request order) {
        state.apply([&](batcher_core& c) { c.pause(order.request); });
      },
      [&state](resume_request order) {
        state.apply([&](batcher_core& c) { c.resume(order.request); });
      },
      [&state](waited_too_long order) {
        state.apply([&](batcher_core& c) { c.waited_too_long(order.request); });
      },
      [&state](const executor_ready& ready) { state.use(ready); },
      [&state](const blocks_fetched& answer) {
        state.apply([&](batcher_core& c) { c.fetched(answer, steady_clock::now()); });
      },
      [&state](const offloader_replaced& replaced) { state.use(replaced.offloader); },
      [&state](const describe_scheduler& order) { state.describe(order); },
      [&state](const ask_ledger& order) { state.account(order); },
  };
}

} // namespace

batcher_actor spawn_batcher(caf::actor_system& system, const batcher_limits& limits,
                            std::shared_ptr<stats_board> stats, kv_allocator_actor kv,
                            offloader_actor offloader, std::shared_ptr<const kv_tiers> tiers,
                            std::shared_ptr<batcher_observer> observer) {
  return system.spawn<caf::detached>(batcher_behavior, limits, std::move(stats), std::move(kv),
                                     std::move(offloader), std::move(tiers), std::move(observer));
}

} // namespace twill::actors
