// The batcher with an allocator that answers late: random schedules of a batcher_core and a
// block_pool, in which each answer comes after a random number of other messages. A model of the
// device checks what every row reads (modelled_device.hpp). After each message, the blocks of the
// allocator, of the batcher and of the plans under way must agree, and nothing may wait for
// anything that cannot come.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/batcher/batcher_core.hpp"
#include "actors/detail/holder_name.hpp"
#include "actors/kv/apply_change.hpp"
#include "actors/kv/grant_blocks.hpp"
#include "actors/offloader/host_pool.hpp"
#include "actors/offloader/kv_tiers.hpp"
#include "tests/actors/batcher/disturbance.hpp"
#include "tests/actors/batcher/modelled_device.hpp"
#include "tests/catch.hpp"

using namespace twill::actors;
using twill::test::disturbance;
using twill::test::modelled_device;
using ids = std::vector<std::int32_t>;

namespace {

/// Counts of events in the schedules of all seeds, so that a test notices if none occur any more.
struct totals {
  std::uint64_t preemptions = 0, plain_preemptions = 0, hits = 0, copies = 0, spills = 0, loads = 0;
  std::uint64_t late = 0;         ///< answers that came after another message
  std::uint64_t lost_answers = 0; ///< answers for a device that was lost meanwhile
};

class schedule final : public session_sink, public tier_sink {
public:
  schedule(std::uint64_t seed, totals& sums)
      : rng_(seed), sums_(sums), limits_(any_limits()), device_(limits_.plan.block_tokens),
        pool_(static_cast<std::int32_t>(limits_.total_blocks), limits_.plan.block_tokens) {
    at_once_ = any(0, 2) == 0 ? 100 : any(0, 1) == 0 ? 0 : any(5, 95);
    plain_ = !limits_.fair && any(0, 1) == 0;
    if (limits_.plan.prefix_cache && any(0, 1) == 0) open_tiers();
    core_ = std::make_unique<batcher_core>(limits_, stats_, *this, tiers_ ? this : nullptr);
    if (any(0, 3) > 0) ready();
  }

  void run(int n_events) {
    for (int i = 0; i < n_events; ++i)
      event([this] { happen(); });
    for (int guard = 0; !live_.empty(); ++guard) {
      if (guard > 20000) FAIL("requests do not end");
      for (const request_id request : std::vector<request_id>(paused_.begin(), paused_.end()))
        event([&] { disturb(request, disturbance::resume); });
      if (!has_executor_) event([this] { ready(); });
      event([this] { answer_fetches(); });
      event([this] { answer_request(); });
      event([this] { step(); });
    }
    while (grant_ || !sent_.empty()) {
      event([this] { answer_request(); });
      event([this] { step(); });
    }
    check_empty();
  }

private:
  std::int32_t any(std::int32_t low, std::int32_t high) {
    return std::uniform_int_distribution<std::int32_t>(low, high)(rng_);
  }
  bool by_chance(std::int32_t percent) { return any(0, 99) < percent; }

  batcher_limits any_limits() {
    batcher_limits l;
    l.plan.max_step_tokens = any(0, 1) == 0 ? any(1, 12) : any(8, 60);
    l.plan.max_running = any(1, 12);
    l.plan.block_tokens = any(1, 5);
    l.plan.prefix_cache = any(0, 2) > 0;
    l.plan.mixed_prompt_tokens = any(0, 1) * any(1, 8);
    l.plan.max_logit_rows = any(1, 12);
    l.plan.copies_blocks = any(0, 2) > 0;
    l.gap_target_s = any(0, 3) == 0 ? 0.04 : 0;
    l.max_queued = any(0, 3) == 0 ? any(0, 4) : 40;
    l.fair = any(0, 1) == 0;
    l.total_blocks = any_total();
    l.shareable_length = any(0, 4) == 0 ? any(4, 40) : 0;
    return l;
  }
  std::int32_t any_total() { return any(0, 3) == 0 ? any(1, 8) : any(6, 48); }

  void open_tiers() {
    kv_tiers::limits l;
    l.host_blocks = any(1, 24);
    l.block_tokens = limits_.plan.block_tokens;
    l.block_bytes = limits_.plan.block_tokens * 8;
    l.key = {1, 2};
    tiers_ = std::make_unique<kv_tiers>(l);
    tiers_->open(host_pool::create(l.block_bytes, l.host_blocks + any(0, 12)).value());
    pool_.name_blocks(l.key);
  }

  /// One message from outside, and all messages that follow from it at once.
  template <class F>
  void event(F&& what) {
    what();
    check();
  }

  void happen() {
    const int what = any(0, 99);
    if (what < 20) return arrive();
    if (what < 44) return step();
    if (what < 64) return answer_request();
    if (what < 69) return answer_fetches();
    if (!has_executor_ && what < 85) return ready();
    if (what < 70 && any(0, 2) == 0) return lose_executor();
    if (what < 71) return any(0, 9) == 0 ? ready() : late_result();
    if (!live_.empty()) disturb(*std::next(live_.begin(), any(0, int(live_.size()) - 1)));
  }
  void disturb(request_id request) {
    const std::int32_t kind = any(0, 11);
    if (kind == 2) { // a stop string can only match after a token was drawn
      const std::int32_t choice = any(0, 3);
      if (drew_.contains({request, choice})) disturb(request, disturbance::end_choice, choice);
    } else if (kind < 2) {
      disturb(request, disturbance::release);
    } else if (kind == 3) {
      disturb(request, disturbance::waited_too_long);
    } else if (kind > 6) {
      disturb(request, disturbance::resume);
    } else if (!plain_) {
      disturb(request, disturbance::pause);
    }
  }
  void disturb(request_id request, disturbance kind, std::int32_t choice = 0) {
    twill::test::disturb(*core_, paused_, request, kind, choice);
    pump();
  }

  // Prompts have one of three beginnings, so that many of them share a prefix.
  ids any_tokens(std::int32_t n) {
    ids tokens;
    const std::int32_t stem = any(1, 3);
    for (; n > 0; --n)
      tokens.push_back(by_chance(3) ? any(1, 9) : stem);
    return tokens;
  }

  void arrive() {
    submit_prompt order;
    order.request = ++last_request_;
    // Many requests need the whole pool, or nearly so.
    const auto most =
        static_cast<std::int32_t>(limits_.total_blocks) * limits_.plan.block_tokens + 1;
    const std::int32_t length = any(2, any(2, std::max(2, std::min(most, 60))));
    const std::int32_t n_prompt = any(1, length - 1);
    order.spec.prompt = std::make_shared<const ids>(any_tokens(n_prompt));
    order.spec.max_new = length - n_prompt;
    twill::config::sampling_params sampling;
    if (any(0, 1) == 0) sampling.max_tokens = order.spec.max_new;
    order.spec.sampling = std::make_shared<const twill::config::sampling_params>(sampling);
    order.spec.cache_scope = static_cast<std::uint64_t>(any(0, 3) == 0) * 0xfedcba9876543210ULL;
    if (!plain_ && any(0, 2) == 0) order.n_choices = any(2, 4);
    if (any(0, 3) == 0)
      go_on(order);
    else if (any(0, 6) == 0)
      order.spec.prompt_logprobs = 0;
    else if (any(0, 8) == 0)
      pool(order);
    const int client = any(1, 3);
    order.client = "client " + std::to_string(client);
    order.limits.weight = client;
    if (client == 3) order.limits = {3, any(1, 2), any(0, 4)};
    order.priority = limits_.fair ? any(-1, 1) : 0;
    if (client == 3) limited_.insert(order.request);
    live_.insert(order.request);
    core_->submit(order);
    pump();
  }
  /// Adds output of an earlier run to the request, and perhaps finishes some of its choices.
  void go_on(submit_prompt& order) {
    std::vector<made_choice> made(static_cast<std::size_t>(order.n_choices));
    for (made_choice& choice : made) {
      choice.finished = any(0, 2) == 0;
      choice.tokens = any_tokens(any(0, order.spec.max_new - 1));
    }
    made[static_cast<std::size_t>(any(0, order.n_choices - 1))].finished = false;
    order.made = std::make_shared<const std::vector<made_choice>>(std::move(made));
  }
  /// As the session submits a prompt whose hidden states are wanted.
  void pool(submit_prompt& order) {
    order.spec.pooling = any(0, 1) == 0 ? pooling::last : pooling::mean;
    order.spec.max_new = 1;
    order.n_choices = 1;
    twill::config::sampling_params sampling;
    sampling.max_tokens = 0;
    order.spec.sampling = std::make_shared<const twill::config::sampling_params>(sampling);
  }

  /// An executor is ready: the first one, one after a loss, or one that replaces an executor.
  void ready() {
    if (generation_ > 0 && any(0, 1) == 0) limits_.total_blocks = any_total();
    if (any(0, 2) == 0) limits_.plan.max_running = any(1, 12);
    forget_device();
    has_executor_ = true;
    core_->executor_ready(++generation_, limits_);
    pump();
  }
  void lose_executor() {
    has_executor_ = false;
    core_->step_failed(generation_, "by chance", any(0, 3) == 0);
    forget_device();
    pump();
  }
  void forget_device() {
    if (!sent_.empty()) late_ = sent_.back().plan;
    sent_.clear();
    device_.clear(limits_.total_blocks);
  }
  /// The result of a step of an earlier generation, or its failure.
  void late_result() {
    if (!late_) return;
    step_result result;
    result.generation = late_->generation;
    result.number = late_->number;
    if (any(0, 1) == 0)
      core_->step_done(result, tick());
    else
      core_->step_failed(late_->generation, "late");
    pump();
  }

  void step() {
    if (sent_.empty()) return;
    const step_plan_ptr plan = sent_.front().plan;
    auto result = device_.run(*plan, [this](const ids& tokens) {
      modelled_device::draw drawn;
      drawn.token = by_chance(5) ? any(1, 9) : tokens.front();
      drawn.stopped = by_chance(4);
      drawn.no_allowed_token = any(0, 400) == 0;
      return drawn;
    });
    result.seconds = any(1, 1000) / 7000.0;
    result.copy_seconds = tiers_ ? result.seconds / 3 : 0;
    sent_.pop_front();
    core_->step_done(result, tick());
    pump();
  }

  /// As batcher_actor does after each message.
  void pump() {
    n_requests_ = 0;
    do {
      // Some orders to skip sequences reach the executor too late to have an effect.
      const auto left = core_->take_departed();
      if (!sent_.empty() && by_chance(70)) device_.skip(left.ids);
      while (const auto plan = plan_one()) {
        note_plan(*plan);
        tell_change();
        check_rows(*plan);
        sent_.push_back({plan, blocks_of(*plan)});
      }
      tell_change();
      ask();
    } while (grant_ && by_chance(at_once_) && take_answer());
    // A plan may wait only for an answer of the allocator that will come.
    if (!grant_ && core_->plan(tick())) FAIL("a plan was put off for nothing");
  }
  step_plan_ptr plan_one() {
    const std::int64_t free = pool_.available() + pool_.ahead();
    const std::uint64_t before = stats_.read().preemptions;
    auto plan = core_->plan(tick());
    const std::uint64_t preempted = stats_.read().preemptions - before;
    sums_.preemptions += preempted;
    // Where no sequence is paused, forked or displaced, only decodes preempt, and only when the
    // decodes before them have used up every free block.
    if (preempted == 0 || !plain_) return plan;
    sums_.plain_preemptions += preempted;
    const auto taken = static_cast<std::int64_t>(plan ? plan->blocks.size() : 0);
    if (free != taken) FAIL("preempted while " << free - taken << " blocks were free");
    return plan;
  }
  void tell_change() {
    const auto change = core_->take_change();
    forked_.clear();
    if (!change) return;
    for (const lease_fork& f : change->forks)
      forked_.insert(f.id);
    if (change->reset) ahead_.clear();
    for (const std::int32_t block : change->blocks)
      if (ahead_.erase(block) == 0) FAIL("block " << block << " was not granted");
    apply_change(pool_, *change);
  }
  void ask() {
    const auto request = core_->take_request();
    if (!request) return;
    REQUIRE(!grant_); // one request is under way at a time
    ++n_requests_;
    // The batcher may ask once more for each fetch that an answer began.
    if (n_requests_ > 5 + std::ssize(fetches_)) FAIL("the batcher asks without end");
    grant_ = grant_blocks(pool_, *request, tiers_.get(), tick());
    asked_in_ = generation_;
    for (const std::int32_t block : grant_->blocks) {
      const bool is_new = ahead_.insert(block).second;
      if (!is_new || pool_.references(block) != 1 || pool_.holds(block))
        FAIL("block " << block << " is granted, but not free");
    }
  }
  void answer_request() {
    if (!grant_) return;
    ++sums_.late;
    take_answer();
    pump();
  }
  bool take_answer() {
    if (asked_in_ != generation_ || !has_executor_) ++sums_.lost_answers;
    core_->granted(*std::exchange(grant_, std::nullopt), tick());
    return true;
  }

  void answer_fetches() {
    for (fetch_blocks& order : std::exchange(fetches_, {})) {
      if (by_chance(20)) { // the fetch is answered at another time, or takes too long
        if (any(0, 1) == 0) {
          fetches_.push_back(std::move(order));
        } else {
          core_->fetched({order.fetch_id, {}, 0, true}, tick());
          pump();
        }
        continue;
      }
      blocks_fetched answer{order.fetch_id, {}, 0.001, false};
      for (const block_key& key : order.keys) {
        auto handed = tiers_->fetch(key, {order.fetch_id, answer.blocks.size()}, now_);
        if (handed.where != kv_tiers::whereabouts::on_host || by_chance(10)) break;
        answer.blocks.push_back(std::move(handed.bytes));
      }
      core_->fetched(std::move(answer), tick());
      pump();
    }
  }

  steady_clock::time_point tick() { return now_ += std::chrono::microseconds(any(1, 5000)); }

  void note_plan(const step_plan& plan) {
    sums_.copies += plan.copies.size();
    sums_.spills += plan.spills.size();
    sums_.loads += plan.loads.size();
    for (const open_sequence& o : plan.opens) {
      tables_[o.id] = o.blocks;
      sums_.hits += limits_.plan.prefix_cache ? o.blocks.size() : 0;
    }
    auto granted = plan.blocks.begin();
    for (const lease_growth& g : plan.grows) {
      auto& table = tables_.at(g.id);
      table.insert(table.end(), granted, granted + g.n_blocks);
      granted += g.n_blocks;
    }
  }
  /// The allocator and the executor have the same blocks for the rows of a plan, and no other
  /// sequence has a block that a row writes to, nor has the prefix cache.
  void check_rows(const step_plan& plan) {
    std::map<std::int32_t, int> n_leases;
    pool_.each_lease([&](sequence_id id, const ids& blocks) {
      if (forked_.contains(id)) return; // this plan writes blocks that the fork shares
      for (const std::int32_t block : blocks)
        ++n_leases[block];
    });
    const std::int32_t width = limits_.plan.block_tokens;
    for (const planned_row& row : plan.rows) {
      const ids& table = tables_.at(row.id);
      if (table != pool_.blocks(row.id)) FAIL("sequence " << row.id << " has other blocks");
      const std::int32_t last = (row.first_position + row.n_tokens - 1) / width;
      for (std::int32_t column = row.first_position / width; column <= last; ++column) {
        const std::int32_t block = table.at(static_cast<std::size_t>(column));
        if (n_leases[block] != 1 || pool_.holds(block))
          FAIL("sequence " << row.id << " writes to block " << block << " of others");
      }
    }
  }
  std::set<std::int32_t> blocks_of(const step_plan& plan) {
    std::set<std::int32_t> blocks;
    for (const planned_row& row : plan.rows)
      blocks.insert(tables_.at(row.id).begin(), tables_.at(row.id).end());
    return blocks;
  }

  void check() {
    if (pool_.ahead() != static_cast<std::int64_t>(ahead_.size())) FAIL("granted blocks differ");
    // No block of a step in flight is free.
    for (const sent_plan& sent : sent_)
      for (const std::int32_t block : sent.blocks)
        if (pool_.references(block) == 0 || ahead_.contains(block))
          FAIL("block " << block << " is free, but in use");
    std::int64_t n_free = 0, n_cached = 0;
    for (std::int32_t block = 0; block < pool_.total(); ++block)
      if (pool_.references(block) == 0) ++(pool_.is_cached(block) ? n_cached : n_free);
    if (n_free != pool_.free() || n_cached != pool_.cached()) FAIL("free blocks differ");
    const std::int64_t used = stats_.read().kv_blocks_used;
    if (used < 0 || used > limits_.total_blocks) FAIL(used << " blocks are used");
    if (any(0, 9) == 0) check_ledger();
    if (has_executor_ && sent_.empty() && !grant_ && fetches_.empty()) check_idle();
  }
  /// Only messages from outside will come, so no request may wait for anything else.
  void check_idle() {
    for (const request_id request : live_)
      if (!paused_.contains(request) && !limited_.contains(request))
        FAIL("request " << request << " waits for nothing");
    if (stats_.read().kv_blocks_used != pool_.used())
      FAIL(pool_.used() << " blocks are used, not " << stats_.read().kv_blocks_used);
  }
  void check_ledger() {
    twill::ledger all = core_->account();
    for (const request_id request : live_)
      all.exists(holder_name(request));
    add_leases(describe(pool_), core_->holders(), all);
    for (const std::string& fault : all.faults())
      if (fault.starts_with("KV blocks")) FAIL(fault);
  }
  void check_empty() {
    check_ledger();
    REQUIRE(pool_.used() == 0);
    REQUIRE(pool_.leases() == 0);
    REQUIRE(pool_.ahead() + pool_.cached() + pool_.free() == pool_.total());
    REQUIRE(pool_.total() == limits_.total_blocks);
    REQUIRE(stats_.read().kv_blocks_used == 0);
    REQUIRE_FALSE(core_->has_queue());
  }

  void queued(request_id) override {}
  void scored(request_id, prompt_scored) override {}
  void pooled(request_id, prompt_pooled) override {}
  void token(request_id request, token_ready token) override {
    drew_.insert({request, token.choice});
  }
  void failed(request_id, const request_error&) override {}
  void forgotten(request_id request) override {
    live_.erase(request);
    paused_.erase(request);
    limited_.erase(request);
  }
  void fetch(fetch_blocks order, std::chrono::milliseconds) override {
    fetches_.push_back(std::move(order));
  }
  void spilled(blocks_spilled blocks) override {
    std::vector<kv_tiers::write_order> writes;
    tiers_->put(std::move(blocks.blocks), now_, writes);
  }

  struct sent_plan {
    step_plan_ptr plan;
    std::set<std::int32_t> blocks; ///< the blocks of its rows
  };

  std::mt19937_64 rng_;
  totals& sums_;
  steady_clock::time_point now_{std::chrono::seconds(1000)};
  batcher_limits limits_;
  modelled_device device_;
  block_pool pool_;
  stats_board stats_;
  std::unique_ptr<kv_tiers> tiers_;
  std::unique_ptr<batcher_core> core_;
  std::int32_t at_once_ = 0; ///< percentage of answers that come before any other message
  bool plain_ = false;       ///< nothing is paused, and each request has one choice
  bool has_executor_ = false;
  std::uint64_t generation_ = 0, asked_in_ = 0;
  request_id last_request_ = 0;
  std::set<request_id> live_, paused_;
  std::set<request_id> limited_; ///< requests of the client with a limit
  std::set<std::pair<request_id, std::int32_t>> drew_;
  std::deque<sent_plan> sent_;
  step_plan_ptr late_; ///< a plan of an earlier generation
  std::map<sequence_id, ids> tables_;
  std::optional<kv_grant> grant_; ///< the allocator's answer that was not delivered yet
  std::set<std::int32_t> ahead_;  ///< granted blocks that no change has named yet
  std::set<sequence_id> forked_;  ///< leases that the last change has begun by a fork
  std::vector<fetch_blocks> fetches_;
  std::ptrdiff_t n_requests_ = 0; ///< requests since the last message that was not an answer
};

/// A batcher whose allocator answers when the test wants it to. A block has one token.
struct slow_allocator final : session_sink {
  explicit slow_allocator(std::int32_t n_blocks) : pool(n_blocks, 1) {
    limits.plan = {16, 8, 1};
    limits.total_blocks = n_blocks;
    core = std::make_unique<batcher_core>(limits, stats, *this);
  }
  void submit(request_id request, std::int32_t n_prompt, std::int32_t max_new) {
    submit_prompt order;
    order.request = request;
    order.spec.prompt = std::make_shared<const ids>(static_cast<std::size_t>(n_prompt), 5);
    order.spec.max_new = max_new;
    order.spec.sampling = std::make_shared<const twill::config::sampling_params>();
    core->submit(order);
    pump();
  }
  void pump() {
    while (const auto plan = core->plan(steady_clock::now())) {
      sent.push_back(plan);
      apply();
    }
    apply();
    if (const auto request = core->take_request()) grant = grant_blocks(pool, *request);
  }
  void apply() {
    if (const auto change = core->take_change()) apply_change(pool, *change);
  }
  void answer() {
    while (grant) {
      core->granted(*std::exchange(grant, std::nullopt), steady_clock::now());
      pump();
    }
  }
  void step() {
    const auto plan = sent.front();
    sent.pop_front();
    step_result result;
    result.generation = plan->generation;
    result.number = plan->number;
    for (const planned_row& row : plan->rows)
      if (row.draws) result.drawn.push_back({row.id, 7});
    core->step_done(result, steady_clock::now());
    pump();
  }

  void queued(request_id) override {}
  void scored(request_id, prompt_scored) override {}
  void pooled(request_id, prompt_pooled) override {}
  void token(request_id, token_ready) override {}
  void failed(request_id, const request_error&) override {}
  void forgotten(request_id) override {}

  block_pool pool;
  batcher_limits limits;
  stats_board stats;
  std::unique_ptr<batcher_core> core;
  std::deque<step_plan_ptr> sent;
  std::optional<kv_grant> grant;
};

} // namespace

TEST_CASE("a plan does not wait for blocks of a sequence that was preempted", "[actors][policy]") {
  slow_allocator r(7);
  r.submit(1, 2, 5);
  r.submit(2, 2, 5);
  r.core->executor_ready(1, r.limits);
  r.pump();
  r.answer();
  REQUIRE(r.sent.size() == 2); // a step with both prompts, and one that decodes both
  r.step();
  // The first request takes the last block, and the second one is preempted.
  REQUIRE(r.sent.size() == 2);
  REQUIRE(r.sent.back()->rows.size() == 1);
  r.answer();
  r.core->release(2);
  r.pump();
  r.answer();
  r.step();
  REQUIRE(r.sent.size() == 1);
  REQUIRE(r.grant);
  r.core->resume(99); // after any order, the batcher sends a request if blocks are wanted
  r.pump();
  r.answer();
  CHECK(r.sent.size() == 2);
}

TEST_CASE("blocks stay apart and requests end, however late the allocator answers",
          "[actors][policy]") {
  totals sums;
  const char* asked = std::getenv("TWILL_LONG");
  const std::uint64_t n =
      asked == nullptr ? 600 : std::max(20000ULL, std::strtoull(asked, nullptr, 10));
  for (std::uint64_t seed = 1; seed <= n; ++seed) {
    INFO("seed " << seed);
    schedule(seed, sums).run(250);
  }
  INFO(sums.preemptions << " preemptions, " << sums.plain_preemptions << " of them without pauses; "
                        << sums.hits << " hits, " << sums.copies << " copies, " << sums.spills
                        << " spills, " << sums.loads << " loads; " << sums.late << " late answers, "
                        << sums.lost_answers << " lost ones");
  CHECK(sums.preemptions > n);
  CHECK(sums.plain_preemptions > n / 100);
  CHECK(sums.hits > 5 * n);
  CHECK(sums.copies > n);
  CHECK(sums.spills > 2 * n);
  CHECK(sums.loads > n / 10);
  CHECK(sums.late > 20 * n);
  CHECK(sums.lost_answers > n / 5);
}
