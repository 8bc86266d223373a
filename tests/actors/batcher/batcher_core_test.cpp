// The batcher's logic without actors, over a real block pool, while the test acts as the executor.
#include "actors/batcher/batcher_core.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "actors/batcher/batcher_snapshot.hpp"
#include "actors/kv/apply_change.hpp"
#include "actors/kv/grant_blocks.hpp"
#include "tests/catch.hpp"

using namespace twill::actors;
using ids = std::vector<std::int32_t>;

namespace {

constexpr std::int32_t end_id = 99;

struct fixture final : session_sink {
  explicit fixture(std::int32_t n_blocks = 100, batcher_limits asked = {})
      : pool(n_blocks, 4), limits(with_blocks(asked, n_blocks)), core(limits, stats, *this) {
    core.executor_ready(++generation, limits);
  }
  static batcher_limits with_blocks(batcher_limits limits, std::int32_t n_blocks) {
    limits.plan.block_tokens = 4;
    limits.total_blocks = n_blocks;
    return limits;
  }

  void queued(request_id request) override { queued_ids.push_back(request); }
  void token(request_id request, token_ready token) override {
    tokens[request].push_back(std::move(token));
  }
  void pooled(request_id, prompt_pooled) override {}
  void scored(request_id request, prompt_scored received) override {
    CHECK(tokens[request].empty());
    scores[request].push_back(*received.scores);
  }
  void failed(request_id request, const request_error& why) override { errors[request] = why; }
  void forgotten(request_id request) override { forgotten_ids.push_back(request); }

  void submit(request_id request, ids prompt, std::int32_t max_new, std::int32_t n_choices = 1,
              std::int32_t prompt_logprobs = -1, bool asked = true) {
    submit_prompt order;
    order.request = request;
    order.spec.prompt = std::make_shared<const ids>(std::move(prompt));
    twill::config::sampling_params sampling;
    if (asked) sampling.max_tokens = max_new;
    order.spec.sampling = std::make_shared<const twill::config::sampling_params>(sampling);
    order.spec.stop_ids = std::make_shared<const ids>(ids{end_id});
    order.spec.seed = 1000;
    order.spec.max_new = max_new;
    order.spec.prompt_logprobs = prompt_logprobs;
    order.n_choices = n_choices;
    order.client = client;
    order.limits = own_limits;
    for (std::int32_t choice = 0; choice < n_choices; ++choice)
      prompts[next_sequence++] = order.spec.prompt;
    core.submit(order);
  }
  /// Acts as the allocator, which answers before the next plan. Plans are collected in `sent`.
  void pump() {
    for (;;) {
      while (apply() || answer()) {
      }
      const auto plan = core.plan(twill::actors::steady_clock::now());
      if (plan) sent.push_back(plan);
      if (!plan && !apply() && !answer()) return;
    }
  }
  /// Answers the batcher's request; returns whether there is one.
  bool answer() {
    const auto request = core.take_request();
    if (!request) return false;
    requests.push_back(*request);
    core.granted(grant_blocks(pool, *request), twill::actors::steady_clock::now());
    return true;
  }
  /// Applies the next kv_change to the pool; returns whether there was one.
  bool apply() {
    const auto change = core.take_change();
    if (!change) return false;
    check_inserts(*change);
    changes.push_back(*change);
    apply_change(pool, *change);
    return true;
  }
  /// The oldest plan comes back, and each of its rows has drawn `token`.
  void step(std::int32_t token = 7) {
    REQUIRE_FALSE(sent.empty());
    const step_plan_ptr plan = sent.front();
    sent.pop_front();
    core.step_done(result_of(*plan, token), twill::actors::steady_clock::now());
    pump();
  }
  step_result result_of(const step_plan& plan, std::int32_t token) {
    step_result result;
    result.generation = plan.generation;
    result.number = plan.number;
    for (sequence_id id : plan.closes)
      n_output.erase(id);
    for (const open_sequence& opened : plan.opens) {
      this->opened[opened.id] = opened;
      n_output[opened.id] = static_cast<std::int32_t>(opened.output.size());
      max_new[opened.id] = opened.spec.max_new;
    }
    for (const planned_row& row : plan.rows) {
      // The score of a position is its number.
      const sequence_spec& spec = opened.at(row.id).spec;
      for (std::int32_t p = row.first_position + 1; p <= row.first_position + row.n_tokens; ++p)
        if (spec.scores_prompt() && p < static_cast<std::int32_t>(spec.prompt->size()))
          result.scored.push_back({row.id, p, -static_cast<float>(p), 0, 0});
      // As the executor does, skip sequences that have ended.
      if (!row.draws || n_output.at(row.id) >= max_new.at(row.id)) continue;
      drawn_token drawn;
      drawn.id = row.id;
      drawn.token = token;
      drawn.stopped = token == end_id;
      n_output.at(row.id) = drawn.stopped ? max_new.at(row.id) : n_output.at(row.id) + 1;
      result.drawn.push_back(drawn);
    }
    return result;
  }
  void run_to_the_end() {
    pump();
    for (int guard = 0; !sent.empty(); ++guard) {
      REQUIRE(guard < 10000);
      step();
    }
  }
  /// Inserts of a lease follow each other from its beginning, or from the blocks it reused.
  void check_inserts(const kv_change& change) {
    if (change.reset) n_inserted.clear();
    for (const prefix_insert& p : change.prefix_inserts) {
      check_tokens(p);
      n_inserted[p.id] += p.tokens.size() / 4;
      inserted_tokens.insert(inserted_tokens.end(), p.tokens.begin(), p.tokens.end());
    }
    for (const auto& [id, n] : n_inserted)
      REQUIRE(n <= pool.blocks(id).size());
    for (sequence_id id : change.drops)
      n_inserted.erase(id);
    for (const lease_reuse& r : change.reuses)
      n_inserted[r.id] = r.blocks.size();
  }
  /// The tokens under which computed blocks are inserted into the prefix cache must be the
  /// sequence's tokens at the blocks' positions; otherwise a later prompt would find the KV of
  /// another text.
  void check_tokens(const prefix_insert& p) {
    ids known = *prompts.at(p.id);
    const std::size_t first = 4 * n_inserted[p.id];
    known.resize(std::max(known.size(), first + p.tokens.size()), 7); // all draws are 7
    const auto at = known.begin() + static_cast<std::ptrdiff_t>(first);
    REQUIRE(p.tokens == ids(at, at + static_cast<std::ptrdiff_t>(p.tokens.size())));
  }
  stats_board stats;
  block_pool pool;
  batcher_limits limits;
  std::uint64_t generation = 0;
  batcher_core core;
  std::deque<step_plan_ptr> sent;
  std::vector<kv_change> changes;
  std::vector<block_request> requests;
  std::vector<request_id> queued_ids, forgotten_ids;
  std::map<request_id, std::vector<token_ready>> tokens;
  std::map<request_id, std::vector<std::vector<prompt_score>>> scores;
  std::map<sequence_id, open_sequence> opened;
  std::map<request_id, request_error> errors;
  std::map<sequence_id, std::int32_t> n_output, max_new;
  std::map<sequence_id, std::size_t> n_inserted;
  ids inserted_tokens;
  std::map<sequence_id, token_ids> prompts;
  sequence_id next_sequence = 1;
  std::string client;
  client_limits own_limits; ///< of `client`
};

ids prompt_of(std::int32_t n, std::int32_t first = 1) {
  ids tokens;
  for (std::int32_t i = 0; i < n; ++i)
    tokens.push_back(first + i);
  return tokens;
}

} // namespace

TEST_CASE("a prompt is queued, gets its blocks and is sent, and the next step is prepared") {
  fixture r;
  r.submit(5, prompt_of(6), 3);
  CHECK(r.queued_ids == std::vector<request_id>{5});
  r.pump();
  REQUIRE(r.sent.size() == 2); // one runs, one is prepared
  const step_plan& first = *r.sent[0];
  REQUIRE(first.opens.size() == 1);
  CHECK(first.opens[0].spec.seed == 1000);
  REQUIRE(first.rows.size() == 1);
  CHECK(first.rows[0].n_tokens == 6);
  CHECK(first.rows[0].draws);
  CHECK(first.blocks == r.pool.blocks(first.rows[0].id));
  const step_plan& second = *r.sent[1];
  CHECK(second.number == first.number + 1);
  CHECK(second.opens.empty());
  CHECK(second.rows[0].first_position == 6);
  CHECK(second.rows[0].n_tokens == 1);
}

TEST_CASE("without an executor nothing is planned") {
  fixture r;
  r.core.step_failed(r.generation, "the device is gone");
  r.submit(5, prompt_of(6), 3);
  r.pump();
  CHECK(r.sent.empty());
  r.core.executor_ready(++r.generation, r.limits);
  r.pump();
  CHECK(r.sent.size() == 2);
}

TEST_CASE("each drawn token is reported once, and the last one by length says so") {
  fixture r;
  r.submit(5, prompt_of(6), 3);
  r.run_to_the_end();
  REQUIRE(r.tokens[5].size() == 3);
  CHECK_FALSE(r.tokens[5][1].length);
  CHECK(r.tokens[5][2].length);
  CHECK_FALSE(r.tokens[5][2].stopped);
  CHECK(r.forgotten_ids == std::vector<request_id>{5});
  CHECK(r.pool.used() == 0);
  CHECK(r.stats.read().generation_tokens == 3);
  CHECK(r.stats.read().prompt_tokens == 6);
}

TEST_CASE("an end id ends a request, and the step prepared meanwhile draws nothing for it") {
  fixture r;
  r.submit(5, prompt_of(6), 10);
  r.pump();
  r.step(7);
  r.step(end_id);
  REQUIRE(r.tokens[5].size() == 2);
  CHECK(r.tokens[5][1].stopped);
  CHECK(r.forgotten_ids.empty()); // a step in flight has a row of the sequence
  r.step();
  CHECK(r.tokens[5].size() == 2);
  CHECK(r.forgotten_ids == std::vector<request_id>{5});
  CHECK(r.pool.used() == 0);
}

TEST_CASE("a stop string ends a choice and its surplus tokens are dropped") {
  fixture r;
  r.submit(5, prompt_of(6), 10);
  r.submit(6, prompt_of(3), 10);
  r.pump();
  r.step();
  r.core.finish_choice(5, 0);
  r.pump();
  CHECK(r.forgotten_ids.empty());
  const std::size_t before = r.tokens[5].size();
  r.step();
  r.step();
  CHECK(r.tokens[5].size() == before);
  CHECK(r.forgotten_ids == std::vector<request_id>{5});
  bool closed = false; // the plan tells the executor to close the sequence
  for (const step_plan_ptr& plan : r.sent)
    closed = closed || plan->closes == std::vector<sequence_id>{1};
  CHECK(closed);
  r.run_to_the_end();
  CHECK(r.tokens[6].size() == 10);
}

TEST_CASE("a cancelled request keeps its blocks until no step in flight refers to it") {
  fixture r;
  r.submit(5, prompt_of(6), 10);
  r.pump();
  r.core.release(5);
  r.pump();
  CHECK(r.pool.used() == 2);
  r.step();
  CHECK(r.pool.used() == 2);
  r.step();
  CHECK(r.pool.used() == 0);
  CHECK(r.tokens.empty());
  CHECK(r.forgotten_ids == std::vector<request_id>{5});
  CHECK(r.sent.empty());
}

TEST_CASE("the executor is to skip what was cancelled, and what it skipped enters no cache") {
  batcher_limits limits;
  limits.plan.prefix_cache = true;
  limits.plan.max_step_tokens = 8;
  fixture r(100, limits);
  r.submit(5, prompt_of(40), 10);
  r.submit(6, prompt_of(4, 100), 3);
  r.pump(); // two steps with eight tokens of the first prompt each
  CHECK(r.core.take_departed().ids.empty());
  r.core.release(5);
  const auto left = r.core.take_departed();
  CHECK(left.generation == r.generation);
  CHECK(left.ids == std::vector<sequence_id>{1});
  CHECK(r.core.take_departed().ids.empty());
  r.step();
  const step_plan_ptr skipped = r.sent.front();
  r.sent.pop_front();
  REQUIRE(skipped->rows.size() == 1);
  step_result result = r.result_of(*skipped, 7);
  result.skipped = {1};
  r.core.step_done(result, twill::actors::steady_clock::now());
  r.run_to_the_end();
  CHECK(r.tokens[6].size() == 3);
  const ids first_step = prompt_of(8);
  CHECK(std::search(r.inserted_tokens.begin(), r.inserted_tokens.end(), first_step.begin(),
                    first_step.end()) != r.inserted_tokens.end());
  CHECK(std::count(r.inserted_tokens.begin(), r.inserted_tokens.end(), 9) == 0);
  CHECK(r.pool.used() == 0);
  const auto& widths = r.stats.read().iteration_tokens.counts;
  CHECK(std::accumulate(widths.begin(), widths.end(), std::uint64_t{0}) == r.stats.read().steps);
}

TEST_CASE("a stop string leaves its choice alone to be skipped, and nothing does after a loss") {
  fixture r;
  r.submit(5, prompt_of(6), 10, 2);
  r.pump();
  r.step();
  r.step();
  r.core.finish_choice(5, 1);
  CHECK(r.core.take_departed().ids == std::vector<sequence_id>{2});
  r.core.release(5);
  r.core.step_failed(r.generation, "lost");
  CHECK(r.core.take_departed().ids.empty());
}

TEST_CASE("a request that is cancelled while it waits is forgotten at once") {
  batcher_limits limits;
  limits.plan.max_running = 1;
  fixture r(100, limits);
  r.submit(5, prompt_of(6), 10);
  r.submit(6, prompt_of(6), 10);
  r.pump();
  r.core.release(6);
  r.pump();
  CHECK(r.forgotten_ids == std::vector<request_id>{6});
}

TEST_CASE("beyond the queue's bound a request is refused with what to do") {
  batcher_limits limits;
  limits.plan.max_running = 2;
  limits.max_queued = 1;
  fixture r(100, limits);
  for (request_id request : {1, 2})
    r.submit(request, prompt_of(3), 5);
  r.pump();
  r.submit(3, prompt_of(3), 5);
  CHECK(r.errors.empty());
  r.submit(4, prompt_of(3), 5);
  REQUIRE(r.errors.count(4) == 1);
  CHECK(r.errors[4].code == errc::queue_full);
  CHECK(r.errors[4].message == "the queue is full (1 waiting); retry later");
  CHECK(r.forgotten_ids == std::vector<request_id>{4});
  CHECK(r.queued_ids.size() == 3);
}

TEST_CASE("a paused request gets no rows until it is resumed") {
  fixture r;
  r.submit(5, prompt_of(6), 10);
  r.core.pause(5);
  r.pump();
  CHECK(r.sent.empty());
  r.core.resume(5);
  r.pump();
  CHECK(r.sent.size() == 2);
}

TEST_CASE("choices share their prompt's full blocks and draw with seeds of their own") {
  fixture r;
  r.submit(5, prompt_of(10), 4, 3);
  r.pump();
  REQUIRE(r.sent.size() == 2);
  CHECK(r.sent[0]->rows.size() == 1);
  REQUIRE(r.sent[1]->rows.size() == 3);
  REQUIRE(r.sent[1]->opens.size() == 2);
  CHECK(r.sent[1]->opens[0].spec.seed == 1001);
  CHECK(r.sent[1]->opens[1].spec.seed == 1002);
  for (const open_sequence& opened : r.sent[1]->opens) {
    REQUIRE(opened.blocks.size() == 2);
    CHECK(std::equal(opened.blocks.begin(), opened.blocks.end(), r.pool.blocks(1).begin()));
  }
  r.run_to_the_end();
  CHECK(r.tokens[5].size() == 12);
  CHECK(r.forgotten_ids == std::vector<request_id>{5});
}

TEST_CASE("a preempted sequence is computed again with its tokens, and enters its blocks anew") {
  batcher_limits limits;
  limits.plan.prefix_cache = true;
  fixture r(8, limits);
  r.submit(5, prompt_of(8), 16);
  r.submit(6, prompt_of(8, 50), 16);
  r.pump();
  std::map<sequence_id, int> opened;
  bool with_output = false;
  for (int guard = 0; !r.sent.empty(); ++guard) {
    REQUIRE(guard < 1000);
    for (const open_sequence& o : r.sent.front()->opens) {
      with_output = with_output || (opened[o.id] > 0 && !o.output.empty());
      opened[o.id] += 1;
    }
    r.step(); // check_inserts() fails if the count of inserted blocks outlives its lease
  }
  CHECK(r.stats.read().preemptions > 0);
  CHECK(opened[1] == 1); // the older sequence is never preempted
  CHECK(opened[2] > 1);
  CHECK(with_output);
  CHECK(r.tokens[5].size() == 16);
  CHECK(r.tokens[6].size() == 16);
  CHECK(r.pool.used() == 0);
}

TEST_CASE("after preemptions every prompt is served the blocks of its own tokens") {
  batcher_limits limits;
  limits.plan.prefix_cache = true;
  fixture r(9, limits);
  for (request_id request = 1; request <= 4; ++request)
    r.submit(request, prompt_of(8, static_cast<std::int32_t>(100 * request)), 12);
  r.run_to_the_end();
  CHECK(r.stats.read().preemptions > 0);
  // Submit the same prompts again: check_tokens() compares the tokens of blocks that are reused.
  for (request_id request = 1; request <= 4; ++request) {
    r.submit(10 + request, prompt_of(8, static_cast<std::int32_t>(100 * request)), 12);
    r.run_to_the_end();
    CHECK(r.tokens[10 + request].size() == 12);
  }
  CHECK(r.pool.used() == 0);
}

TEST_CASE("a client with one request does not wait for all of another's") {
  batcher_limits limits;
  limits.plan.max_running = 4;
  limits.max_queued = 500;
  for (const bool fair : {true, false}) {
    limits.fair = fair;
    fixture r(2000, limits);
    r.client = "many";
    for (request_id request = 1; request <= 300; ++request)
      r.submit(request, prompt_of(4), 20);
    r.pump();
    r.step();
    r.client = "one";
    r.submit(1000, prompt_of(4), 20);
    int steps = 0;
    while (r.tokens.count(1000) == 0 && steps < 100) {
      r.step();
      ++steps;
    }
    if (fair)
      CHECK(steps <= 6); // a running sequence of the other client makes room
    else
      CHECK(steps == 100);
    r.run_to_the_end();
    CHECK(r.tokens[1000].size() == 20);
    CHECK(r.tokens[300].size() == 20);
    CHECK(r.pool.used() == 0);
  }
}

TEST_CASE("a tenant runs and queues no more than it may, and others pass it") {
  batcher_limits limits;
  limits.plan.max_running = 8;
  limits.max_queued = 500;
  for (const bool fair : {true, false}) {
    limits.fair = fair;
    fixture r(2000, limits);
    r.client = "bounded";
    r.own_limits = {1, 2, 5};
    for (request_id request = 1; request <= 10; ++request)
      r.submit(request, prompt_of(4), 3);
    // Two may start and five may wait.
    CHECK(r.errors.size() == 3);
    CHECK(r.errors[8].code == errc::queue_full);
    CHECK(r.errors[8].message.find("`tenants.max_queued`") != std::string::npos);
    r.client = "free";
    r.own_limits = {};
    for (request_id request = 11; request <= 14; ++request)
      r.submit(request, prompt_of(4), 3);
    r.pump();
    CHECK(r.sent[0]->rows.size() == 6);
    CHECK(r.stats.read().requests_running == 6);
    while (!r.sent.empty()) {
      std::size_t of_bounded = 0;
      for (const planned_row& row : r.sent.front()->rows)
        of_bounded += row.id <= 7;
      CHECK(of_bounded <= 2);
      r.step();
    }
    for (request_id request = 1; request <= 14; ++request)
      if (r.errors.count(request) == 0) CHECK(r.tokens[request].size() == 3);
    CHECK(r.pool.used() == 0);
  }
}

TEST_CASE("a request that was never scheduled ends when it has waited too long") {
  batcher_limits limits;
  limits.plan.max_running = 1;
  fixture r(100, limits);
  r.submit(1, prompt_of(4), 5);
  r.submit(2, prompt_of(4), 5);
  r.pump();
  r.core.waited_too_long(1); // has no effect: request 1 runs
  r.core.waited_too_long(2);
  r.core.waited_too_long(3); // has no effect: there is no such request
  CHECK(r.errors.size() == 1);
  CHECK(r.errors[2].code == errc::queue_timed_out);
  r.run_to_the_end();
  CHECK(r.tokens[1].size() == 5);
  CHECK(r.forgotten_ids.size() == 2);
}

TEST_CASE("paused requests do not count against the bound of the queue") {
  batcher_limits limits;
  limits.plan.max_running = 1;
  limits.max_queued = 2;
  fixture r(100, limits);
  for (request_id request = 1; request <= 10; ++request) {
    r.submit(request, prompt_of(3), 5);
    r.core.pause(request);
  }
  CHECK(r.errors.empty());
  r.submit(20, prompt_of(3), 5);
  r.run_to_the_end();
  CHECK(r.tokens[20].size() == 5);
  CHECK(r.stats.read().requests_waiting == 10);
  for (request_id request = 1; request <= 10; ++request)
    r.core.resume(request);
  r.run_to_the_end();
  CHECK(r.forgotten_ids.size() == 11);
  CHECK(r.stats.read().requests_waiting == 0);
}

TEST_CASE("where nothing can be admitted, no more than the head of the queue is looked up") {
  batcher_limits limits;
  limits.plan.prefix_cache = true;
  fixture r(12, limits);
  for (request_id request = 1; request <= 50; ++request)
    r.submit(request, prompt_of(16, static_cast<std::int32_t>(100 * request)), 20);
  r.pump();
  r.step();
  r.step();
  r.requests.clear();
  r.step();
  REQUIRE_FALSE(r.requests.empty());
  for (const block_request& request : r.requests)
    CHECK(request.queries.size() <= 1);
  r.run_to_the_end();
  for (request_id request = 1; request <= 50; ++request)
    CHECK(r.tokens[request].size() == 20);
}

TEST_CASE("a drop is sent and the next prompt is looked up") {
  batcher_limits limits;
  limits.plan.prefix_cache = true;
  limits.plan.max_running = 1;
  fixture r(100, limits);
  r.submit(1, {1, 2, 3, 4, 5}, 1);
  r.submit(2, {1, 2, 3, 4, 5}, 1);
  r.pump();
  r.step();
  CHECK(std::any_of(r.changes.begin(), r.changes.end(),
                    [](const kv_change& c) { return !c.drops.empty(); }));
  CHECK(std::any_of(r.requests.begin(), r.requests.end(),
                    [](const block_request& b) { return b.queries.size() == 1; }));
  r.run_to_the_end();
  CHECK(r.tokens[2].front().cached_tokens == 4);
}

TEST_CASE("a prompt that is cached is asked for, reused and counted") {
  batcher_limits limits;
  limits.plan.prefix_cache = true;
  fixture r(20, limits);
  r.submit(5, prompt_of(9), 2);
  r.run_to_the_end();
  r.submit(6, prompt_of(9), 2);
  r.pump();
  REQUIRE_FALSE(r.sent.empty());
  CHECK(r.sent.front()->rows[0].first_position == 8);
  CHECK(r.sent.front()->opens[0].blocks.size() == 2);
  r.run_to_the_end();
  CHECK(r.tokens[6].front().cached_tokens == 8);
  CHECK(r.stats.read().prefix_cache_hits == 8);
  CHECK(r.stats.read().prefix_cache_queries == 18);
}

TEST_CASE("a sequence beyond the shareable length neither asks for blocks nor enters its own") {
  batcher_limits limits;
  limits.plan.prefix_cache = true;
  limits.shareable_length = 8;
  fixture r(20, limits);
  r.submit(5, prompt_of(12), 2);
  r.run_to_the_end();
  CHECK(r.inserted_tokens.empty());
  r.submit(6, prompt_of(7), 6); // shareable until the length passes 8: two blocks are inserted
  r.run_to_the_end();
  CHECK(r.inserted_tokens == ids{1, 2, 3, 4, 5, 6, 7, 7});
}

TEST_CASE("a failed step fails its requests; the others are computed again by the next executor") {
  batcher_limits limits;
  limits.plan.max_running = 1;
  fixture r(100, limits);
  r.submit(5, prompt_of(6), 10);
  r.submit(6, prompt_of(6), 2);
  r.pump();
  r.step(); // request 5 has streamed a token
  const std::uint64_t generation = r.sent.front()->generation;
  r.core.step_failed(generation, "the device is gone");
  CHECK(r.errors.at(5).code == errc::executor_failed);
  CHECK(r.errors.count(6) == 0);
  auto stale = r.sent;
  r.sent.clear();
  r.pump();
  CHECK(r.sent.empty());
  CHECK(r.changes.back().reset);
  CHECK(r.pool.used() == 0);
  for (const step_plan_ptr& plan : stale) // results of an earlier generation of the executor are
                                          // ignored
    r.core.step_done(r.result_of(*plan, 7), twill::actors::steady_clock::now());
  r.core.step_failed(generation, "again");
  r.core.executor_ready(++r.generation, r.limits);
  r.pump();
  REQUIRE_FALSE(r.sent.empty());
  CHECK(r.sent.front()->generation == generation + 1);
  r.run_to_the_end();
  CHECK(r.tokens[6].size() == 2);
  CHECK(r.tokens[5].size() == 1);
}

TEST_CASE("a request of which nothing was drawn survives one failed step, and no second one") {
  fixture r;
  for (const bool again : {false, true}) {
    r.submit(again ? 6 : 5, prompt_of(6), 2);
    r.pump();
    r.core.step_failed(r.generation, "EIO");
    r.sent.clear();
    r.pump();
    r.core.executor_ready(++r.generation, r.limits);
    r.pump();
    CHECK(r.errors.empty());
    if (!again) r.run_to_the_end();
  }
  CHECK(r.tokens[5].size() == 2);
  r.core.step_failed(r.generation, "EIO");
  r.sent.clear();
  r.pump();
  CHECK(r.errors.at(6).code == errc::executor_failed);
  CHECK(r.pool.used() == 0);
}

TEST_CASE("requests of a step that lost the device may be asked of the next server") {
  const bool streamed = GENERATE(false, true); // a request without output is not retried either
  fixture r;
  r.submit(5, prompt_of(6), 10);
  r.submit(6, prompt_of(6), 10);
  r.pump();
  if (streamed) r.step();
  r.core.step_failed(r.generation, "an illegal address", true);
  CHECK(r.errors.at(5).code == errc::shutting_down);
  CHECK(r.errors.at(6).code == errc::shutting_down);
}

TEST_CASE("an executor that restarts with fewer blocks never gets a block beyond them") {
  fixture r(20);
  const auto reload = [&r](std::int32_t n_blocks) {
    r.core.step_failed(r.generation, "the device is gone");
    r.sent.clear();
    r.pump();
    r.limits.total_blocks = n_blocks;
    r.core.executor_ready(++r.generation, r.limits);
  };
  r.submit(5, prompt_of(20), 8);                // 28 tokens: fits 7 blocks
  r.submit(6, prompt_of(20), 20);               // 40 tokens do not fit, but were asked for
  r.submit(7, prompt_of(20), 20, 1, -1, false); // the client asked for no length
  r.submit(8, prompt_of(40), 20, 1, -1, false); // its prompt alone does not fit
  r.pump();
  reload(7);
  CHECK(r.errors.size() == 2);
  CHECK(r.errors.at(6).code == errc::too_large);
  CHECK(r.errors.at(8).code == errc::too_large);
  r.submit(9, prompt_of(20), 20); // as from a session that knows the former sizes
  CHECK(r.errors.at(9).code == errc::too_large);
  r.run_to_the_end();
  CHECK(r.pool.total() == 7);
  CHECK(r.tokens[5].size() == 8);
  CHECK(r.tokens[7].size() == 9); // 7 blocks of 4 tokens, and the last token needs no place
  CHECK(r.tokens[7].back().length);
  CHECK(r.stats.read().kv_blocks_total == 7);
  reload(50); // and with more blocks again
  r.submit(10, prompt_of(100), 90);
  r.run_to_the_end();
  CHECK(r.tokens[10].size() == 90);
  CHECK(r.pool.total() == 50);
}

TEST_CASE("a snapshot names the blocks of sequences, and the blocks that belong to none") {
  fixture r;
  r.submit(1, ids(6, 5), 3);
  r.pump();
  twill::actors::kv_leases leases;
  leases.snapshot.total_blocks = 9;
  const auto running = with_blocks(r.core.describe(), leases).sequences;
  REQUIRE(running.size() == 1);
  leases.leases = {{running[0].id, "0-1", 2}, {running[0].id + 77, "4", 1}};
  const auto snapshot = with_blocks(r.core.describe(), leases);
  CHECK(snapshot.total_blocks == 9);
  REQUIRE(snapshot.sequences.size() == 1);
  CHECK(snapshot.sequences[0].id == running[0].id);
  CHECK(snapshot.sequences[0].request == 1);
  CHECK(snapshot.sequences[0].running);
  CHECK_FALSE(snapshot.sequences[0].paused);
  CHECK(snapshot.sequences[0].tokens == 6);
  CHECK(snapshot.sequences[0].max_tokens == 9);
  CHECK(snapshot.sequences[0].blocks == "0-1");
  CHECK(snapshot.sequences[0].n_blocks == 2);
  REQUIRE(snapshot.orphans.size() == 1);
  CHECK(snapshot.orphans[0].id == running[0].id + 77);
  CHECK(snapshot.orphans[0].blocks == "4");
  CHECK(snapshot.orphans[0].n_blocks == 1);
  r.core.pause(1);
  CHECK(with_blocks(r.core.describe(), leases).sequences[0].paused);
}

TEST_CASE("gauges say who runs and who waits") {
  batcher_limits limits;
  limits.plan.max_running = 1;
  fixture r(100, limits);
  r.submit(5, prompt_of(6), 10);
  r.submit(6, prompt_of(6), 10);
  r.pump();
  const engine_stats s = r.stats.read();
  CHECK(s.requests_running == 1);
  CHECK(s.requests_waiting == 1);
  CHECK(s.kv_blocks_used == 2);
  CHECK(s.kv_blocks_total == 100);
}

TEST_CASE("a step's time, tokens and gaps are observed for what the step did") {
  fixture r;
  r.submit(1, ids(6, 5), 3);
  r.pump();
  auto at = twill::actors::steady_clock::time_point{} + std::chrono::hours(1);
  const auto step = [&](double seconds, std::int64_t memory) {
    REQUIRE_FALSE(r.sent.empty());
    const step_plan_ptr plan = r.sent.front();
    r.sent.pop_front();
    step_result result = r.result_of(*plan, 7);
    result.seconds = seconds;
    result.memory_used_bytes = memory;
    at += std::chrono::milliseconds(125);
    r.core.step_done(result, at);
    r.pump();
  };
  step(0.5, 100);
  CHECK(r.stats.read().prefill_step_seconds.sum == 0.5);
  CHECK(r.stats.read().iteration_tokens.sum == 6);
  CHECK(r.stats.read().prompt_tokens == 6);
  CHECK(r.stats.read().inter_token_latency_seconds.sum == 0);
  step(0.25, 300);
  CHECK(r.stats.read().decode_step_seconds.sum == 0.25);
  r.submit(2, ids(5, 6), 3); // joins the step after the one that is prepared
  while (r.stats.read().mixed_step_seconds.sum == 0 && !r.sent.empty())
    step(0.125, 200);
  const engine_stats all = r.stats.read();
  CHECK(all.prefill_step_seconds.sum + all.decode_step_seconds.sum + all.mixed_step_seconds.sum ==
        0.75 + 0.125 * static_cast<double>(all.steps - 2));
  CHECK(all.device_memory_reserved_bytes == 200);
  CHECK(all.kv_block_tokens == 4);
  CHECK(all.generation_tokens == r.tokens[1].size() + r.tokens[2].size());
  std::uint64_t gaps = 0;
  for (const auto n : all.inter_token_latency_seconds.counts)
    gaps += n;
  CHECK(gaps == r.tokens[1].size() - 1 + (r.tokens[2].empty() ? 0 : r.tokens[2].size() - 1));
  CHECK(all.inter_token_latency_seconds.sum == 0.125 * static_cast<double>(gaps));
}

TEST_CASE("a prompt is scored once, before its tokens, however it is cut and whatever is cached") {
  batcher_limits limits;
  limits.plan.max_step_tokens = 16;
  limits.plan.max_running = 3;
  limits.plan.max_logit_rows = 5;
  limits.plan.prefix_cache = true;
  fixture r(100, limits);
  ids prompt(23);
  std::iota(prompt.begin(), prompt.end(), 1);
  r.submit(1, prompt, 3); // leaves its blocks in the cache
  r.run_to_the_end();
  r.submit(2, prompt, 3, 2, 0);
  r.submit(3, prompt, 3);
  r.submit(4, {9}, 2, 1, 0);
  r.run_to_the_end();
  REQUIRE(r.scores[2].size() == 1);
  REQUIRE(r.scores[2][0].size() == 22);
  for (std::size_t p = 0; p < 22; ++p)
    CHECK(r.scores[2][0][p].logprob == -static_cast<float>(p + 1));
  CHECK(r.tokens[2].size() == 6);
  CHECK(r.tokens[2][0].cached_tokens == 0);
  CHECK(r.tokens[3][0].cached_tokens == 20);
  CHECK(r.scores[3].empty());
  REQUIRE(r.scores[4].size() == 1);
  CHECK(r.scores[4][0].empty());
  CHECK(r.scores[1].empty());
}

TEST_CASE("scored prompts never ask for more rows of logits than there are") {
  batcher_limits limits;
  limits.plan.max_step_tokens = 32;
  limits.plan.max_running = 4;
  limits.plan.max_logit_rows = 6;
  fixture r(200, limits);
  for (request_id request = 1; request <= 12; ++request)
    r.submit(request, ids(static_cast<std::size_t>(3 + request * 5 % 29), 1), 9, 1,
             request % 3 == 0 ? -1 : 0);
  r.pump();
  for (int guard = 0; !r.sent.empty(); ++guard) {
    REQUIRE(guard < 2000);
    const step_plan& plan = *r.sent.front();
    for (const open_sequence& o : plan.opens)
      r.opened[o.id] = o;
    std::int32_t rows = 0;
    for (const planned_row& row : plan.rows)
      rows += r.opened.at(row.id).spec.scores_prompt() ? row.n_tokens : row.draws ? 1 : 0;
    CHECK(rows <= 6);
    r.step();
  }
  for (request_id request = 1; request <= 12; ++request) {
    CHECK(r.tokens[request].size() == 9);
    CHECK(r.scores[request].size() == (request % 3 == 0 ? 0u : 1u));
  }
}

TEST_CASE("a sequence whose grammar allows no token fails alone") {
  fixture r;
  r.submit(1, {1, 2, 3}, 5);
  r.submit(2, {1, 2, 3}, 5);
  r.pump();
  const step_plan_ptr plan = r.sent.front();
  r.sent.pop_front();
  step_result result = r.result_of(*plan, 7);
  result.drawn.at(0).no_allowed_token = true;
  r.core.step_done(result, twill::actors::steady_clock::now());
  r.run_to_the_end();
  CHECK(r.errors.at(1).code == errc::executor_failed);
  CHECK(r.tokens[1].empty());
  CHECK(r.tokens[2].size() == 5);
}
