// Traces of a scheduler's inputs and decisions, recorded and replayed, from a batcher_core under
// random operations and from an engine. Changed traces are detected, and damaged ones do no harm.
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "actors/batcher/batcher_core.hpp"
#include "actors/kv/apply_change.hpp"
#include "actors/kv/grant_blocks.hpp"
#include "actors/trace/replay.hpp"
#include "actors/trace/scheduler_trace.hpp"
#include "actors/trace/trace_file.hpp"
#include "tests/actors/batcher/disturbance.hpp"
#include "tests/actors/kept_events.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/temp_folder.hpp"
#include "tests/paths.hpp"

using namespace twill::actors;
using twill::test::disturbance;
using verdict = replay_outcome::verdict;

namespace {

/// Collects the lines of a stream, as in a file.
class text_sink final : public trace_sink {
public:
  void saw(std::chrono::nanoseconds at, std::string_view body) override { add(at, body); }
  void decided(std::chrono::nanoseconds at, std::string_view body) override { add(at, body); }
  std::string text;

private:
  void add(std::chrono::nanoseconds at, std::string_view body) {
    text += R"({"s":1,"t":)" + std::to_string(at.count()) + "," + std::string(body) + "}\n";
  }
};

/// A recorded batcher under random operations. Answers of the tiers are drawn at random.
class recorded final : public session_sink, public tier_sink {
public:
  recorded(std::uint64_t seed, bool tiers) : rng_(seed), tiers_(tiers), trace_(sink_) {
    limits_.plan = {any(4, 40), any(1, 8), 4, any(0, 3) > 0, any(0, 2) > 0 ? 0 : any(1, 8)};
    if (tiers) limits_.plan.prefix_cache = true;
    limits_.gap_target_s = limits_.plan.mixed_prompt_tokens == 0 ? 0.04 : 0;
    limits_.fair = any(0, 2) > 0;
    limits_.max_queued = any(0, 12);
    limits_.total_blocks = any(12, 40);
    pool_ = std::make_unique<block_pool>(static_cast<std::int32_t>(limits_.total_blocks), 4);
    trace_.begin("a model", limits_, tiers);
    core_ = std::make_unique<batcher_core>(limits_, stats_, *this, tiers ? this : nullptr, trace_);
    ready();
  }

  std::string run(int operations) {
    for (int i = 0; i < operations; ++i)
      operate();
    for (int guard = 0; guard < 100000 && !live_.empty(); ++guard) {
      for (const request_id request : std::vector<request_id>(paused_.begin(), paused_.end()))
        disturb(request, disturbance::resume);
      answer_fetches();
      answer_request();
      step();
    }
    REQUIRE(live_.empty());
    return sink_.text;
  }
  engine_stats stats() const { return stats_.read(); }
  int n_failed = 0, n_continued = 0, n_pooled = 0;

private:
  std::int32_t any(std::int32_t low, std::int32_t high) {
    return std::uniform_int_distribution<std::int32_t>(low, high)(rng_);
  }
  request_id any_live() {
    return *std::next(live_.begin(), any(0, static_cast<std::int32_t>(live_.size()) - 1));
  }
  void operate() {
    const int what = any(0, 19);
    if (what < 4) return arrive();
    if (what == 4 && any(0, 20) == 0) return lose_executor();
    if (what == 5) return answer_fetches();
    if (what >= 17) answer_request();
    if (what < 10 && !live_.empty()) return disturb(any_live());
    step();
  }
  void disturb(request_id request) {
    const std::int32_t kind = any(0, 9);
    if (kind == 5) { // a failure that belongs to an earlier generation of the executor
      core_->step_failed(generation_ + 1, "late");
      pump();
    } else if (kind == 1) { // a stop string can only match after a token was drawn
      if (drew_.count(request) > 0) disturb(request, disturbance::end_choice);
    } else {
      disturb(request, kind == 0                ? disturbance::release
                       : kind == 2              ? disturbance::waited_too_long
                       : kind == 3 || kind == 4 ? disturbance::pause
                                                : disturbance::resume);
    }
  }
  void disturb(request_id request, disturbance kind) {
    twill::test::disturb(*core_, paused_, request, kind);
    pump();
  }
  void arrive() {
    submit_prompt order;
    order.request = ++last_request_;
    std::vector<std::int32_t> prompt;
    const int stem = any(1, 3);
    for (int n = any(1, 30); n > 0; --n)
      prompt.push_back(any(0, 60) == 0 ? any(1, 9) : stem);
    order.spec.prompt = std::make_shared<const std::vector<std::int32_t>>(std::move(prompt));
    twill::config::sampling_params sampling;
    order.spec.max_new = any(1, 20);
    if (any(0, 1) == 0) sampling.max_tokens = order.spec.max_new;
    order.spec.sampling = std::make_shared<const twill::config::sampling_params>(sampling);
    order.spec.cache_scope = static_cast<std::uint64_t>(any(0, 1)) * 0xfedcba9876543210ULL;
    if (any(0, 9) == 0) order.spec.prompt_logprobs = 0;
    order.n_choices = any(0, 5) == 0 ? 3 : 1;
    if (any(0, 3) == 0)
      go_on(order, stem);
    else if (any(0, 4) == 0)
      pool(order);
    const int client = any(1, 3);
    order.client = "key t" + std::to_string(client);
    order.limits.weight = client;
    if (client == 3) order.limits = {3, 2, 2};
    order.priority = limits_.fair ? any(-1, 1) : 0;
    live_.insert(order.request);
    core_->submit(order);
    pump();
  }
  /// Adds output of an earlier run to the request, and perhaps finishes some of its choices.
  void go_on(submit_prompt& order, int stem) {
    std::vector<made_choice> made(static_cast<std::size_t>(order.n_choices));
    for (made_choice& choice : made) {
      choice.finished = any(0, 2) == 0;
      for (int n = any(0, order.spec.max_new - 1); n > 0; --n)
        choice.tokens.push_back(any(0, 60) == 0 ? any(1, 9) : stem);
    }
    made[static_cast<std::size_t>(any(0, order.n_choices - 1))].finished = false;
    order.made = std::make_shared<const std::vector<made_choice>>(std::move(made));
    order.spec.prompt_logprobs = -1;
    ++n_continued;
  }
  /// As the session submits a prompt whose hidden states are wanted.
  void pool(submit_prompt& order) {
    order.spec.pooling = any(0, 1) == 0 ? pooling::last : pooling::mean;
    order.spec.max_new = 1;
    order.spec.prompt_logprobs = -1;
    order.n_choices = 1;
    twill::config::sampling_params sampling;
    sampling.max_tokens = 0;
    order.spec.sampling = std::make_shared<const twill::config::sampling_params>(sampling);
    ++n_pooled;
  }
  void ready() {
    // The next generation of the executor may have less memory.
    if (generation_ > 0 && any(0, 1) == 0) limits_.total_blocks = any(10, 40);
    core_->executor_ready(++generation_, limits_);
    sent_.clear();
    pump();
  }
  void lose_executor() {
    core_->step_failed(generation_, "by chance");
    sent_.clear();
    pump();
    ready();
  }
  void answer_fetches() {
    for (const auto& [fetch_id, n] : std::exchange(asked_, {})) {
      core_->fetched({fetch_id, std::vector<host_block>(static_cast<std::size_t>(any(0, n)))},
                     tick());
      pump();
    }
  }
  void step() {
    if (sent_.empty()) return;
    const step_plan_ptr plan = sent_.front();
    sent_.pop_front();
    step_result result;
    result.generation = plan->generation;
    result.number = plan->number;
    result.seconds = any(1, 1000) / 7000.0;
    result.copy_seconds = tiers_ ? result.seconds / 3 : 0;
    for (const sequence_id id : plan->closes)
      over_.erase(id);
    for (const open_sequence& o : plan->opens) {
      over_[o.id] = o.spec.max_new - static_cast<std::int32_t>(o.output.size());
      if (o.spec.is_pooled()) pooled_.insert(o.id);
    }
    for (const sequence_id id : plan->closes) {
      left_.erase(id);
      skipped_.erase(id);
    }
    for (const planned_row& row : plan->rows) {
      // The batcher tells the executor to skip sequences that have ended. This may come too late,
      // and then the executor runs one more step of the sequence. A sequence that was skipped once
      // is skipped in every later step too.
      if (left_.contains(row.id) && (skipped_.contains(row.id) || any(0, 3) > 0)) {
        skipped_.insert(row.id);
        result.skipped.push_back(row.id);
        continue;
      }
      if (!row.draws || over_.at(row.id) <= 0) continue;
      drawn_token drawn;
      drawn.id = row.id;
      drawn.token = any(1, 2);
      drawn.stopped = any(0, 19) == 0;
      drawn.no_allowed_token = any(0, 400) == 0;
      if (pooled_.contains(row.id)) {
        drawn = {};
        drawn.id = row.id;
        drawn.first_top = static_cast<std::int32_t>(result.pooled.size());
        result.pooled.push_back(std::make_shared<const std::vector<float>>());
      }
      over_.at(row.id) = drawn.stopped ? 0 : over_.at(row.id) - 1;
      result.drawn.push_back(drawn);
    }
    core_->step_done(result, tick());
    pump();
  }
  void pump() {
    const skip_sequences left = core_->take_departed();
    left_.insert(left.ids.begin(), left.ids.end());
    while (const auto plan = core_->plan(tick())) {
      sent_.push_back(plan);
      apply();
    }
    apply();
    if (const auto request = core_->take_request()) {
      grant_ = grant_blocks(*pool_, *request);
      if (tiers_) play_tiers(*request, *grant_);
      if (any(0, 2) > 0) answer_request(); // otherwise answered later, after other messages
    }
  }
  void apply() {
    if (const auto change = core_->take_change()) apply_change(*pool_, *change);
  }
  void answer_request() {
    if (!grant_) return;
    core_->granted(*std::exchange(grant_, std::nullopt), tick());
    pump();
  }
  void play_tiers(const block_request& request, kv_grant& grant) {
    for (std::size_t i = 0; i < grant.matches.size(); ++i) {
      const auto left = static_cast<std::int32_t>(request.queries[i].tokens.size() / 4 -
                                                  grant.matches[i].blocks.size());
      if (any(0, 3) == 0) grant.matches[i].tier_keys.resize(static_cast<std::size_t>(any(0, left)));
    }
    if (any(0, 9) == 0) grant.spills.push_back({any(0, 9), {}, {}});
  }
  steady_clock::time_point tick() { return now_ += std::chrono::microseconds(any(1, 5000)); }

  void queued(request_id) override {}
  void scored(request_id, prompt_scored) override {}
  void pooled(request_id request, prompt_pooled) override { drew_.insert(request); }
  void token(request_id request, token_ready token) override {
    if (token.choice == 0) drew_.insert(request);
  }
  void failed(request_id, const request_error&) override { ++n_failed; }
  void forgotten(request_id request) override {
    live_.erase(request);
    drew_.erase(request);
    paused_.erase(request);
  }
  void fetch(fetch_blocks order, std::chrono::milliseconds) override {
    asked_[order.fetch_id] = static_cast<std::int32_t>(order.keys.size());
  }
  void spilled(blocks_spilled) override {}

  std::mt19937_64 rng_;
  bool tiers_;
  text_sink sink_;
  scheduler_trace trace_;
  stats_board stats_;
  batcher_limits limits_;
  std::unique_ptr<block_pool> pool_;
  std::unique_ptr<batcher_core> core_;
  std::uint64_t generation_ = 0;
  request_id last_request_ = 0;
  std::set<request_id> live_, paused_, drew_;
  std::deque<step_plan_ptr> sent_;
  std::map<sequence_id, std::int32_t> over_; ///< how many tokens are left to draw
  std::set<sequence_id> left_;               ///< sequences that the executor was asked to skip
  std::set<sequence_id> pooled_;             ///< ids of pooled prompts
  std::set<sequence_id> skipped_;            ///< sequences of which a row was skipped
  std::map<std::uint64_t, std::int32_t> asked_;
  std::optional<kv_grant> grant_; ///< the allocator's answer that was not delivered yet
  steady_clock::time_point now_ = steady_clock::now();
};

replay_outcome replay_text(const std::string& text) {
  std::istringstream in(text);
  return replay(in);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines)
    text += line + "\n";
  return text;
}

/// At most twelve lines of `text`, up to line number `line`.
std::string before_line(const std::string& text, std::uint64_t line) {
  auto lines = lines_of(text);
  lines.resize(std::min<std::size_t>(lines.size(), line));
  lines.erase(lines.begin(), lines.end() - std::min<std::ptrdiff_t>(12, std::ssize(lines)));
  return joined(lines);
}

} // namespace

TEST_CASE("a recorded scheduler decides the same again", "[trace]") {
  std::uint64_t preemptions = 0, hits = 0, decisions = 0;
  int failed = 0, continued = 0, pooled = 0;
  const int n = std::getenv("TWILL_LONG") != nullptr ? 1500 : 60;
  for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(n); ++seed) {
    INFO("seed " << seed);
    recorded run(seed, seed % 3 == 0);
    const std::string text = run.run(250);
    const auto outcome = replay_text(text);
    INFO("line " << outcome.line << ": " << outcome.what);
    INFO("after\n" << before_line(text, outcome.line));
    REQUIRE(outcome.what_came == verdict::same);
    REQUIRE(outcome.requests > 0);
    preemptions += run.stats().preemptions;
    hits += run.stats().prefix_cache_hits;
    decisions += outcome.decisions;
    failed += run.n_failed;
    continued += run.n_continued;
    pooled += run.n_pooled;
  }
  CHECK(preemptions > 20);
  CHECK(hits > 100);
  CHECK(decisions > 1000);
  CHECK(failed > 20);
  CHECK(continued > 100);
  CHECK(pooled > 100);
}

TEST_CASE("a trace of a batcher that waited for the allocator decides the same again", "[trace]") {
  std::ifstream file(twill::test::source_dir() + "/tests/actors/trace/version_2.trace");
  std::string text(std::istreambuf_iterator<char>(file), {});
  const auto outcome = replay_text(text);
  INFO("line " << outcome.line << ": " << outcome.what);
  CHECK(outcome.what_came == verdict::same);
  CHECK(outcome.decisions > 30);
  const std::string rows = "\"rows\":\"";
  auto changed = text;
  changed.replace(changed.rfind(rows), rows.size(), rows + "9999,");
  CHECK(replay_text(changed).what_came == verdict::different);
  // A plan may list very many blocks.
  auto longer = text;
  const std::string blocks = ",\"blocks\":\"";
  longer.insert(longer.rfind(blocks) + blocks.size(), std::string(2'000'000, '1'));
  CHECK(replay_text(longer).what_came == verdict::same);
  text.replace(text.find("\"version\":2"), 11, "\"version\":2,\"tiers\":true");
  CHECK(replay_text(text).what_came == verdict::unreadable);
}

TEST_CASE("a trace with one line changed is found out at that line or after it", "[trace]") {
  const auto lines = lines_of(recorded(11, false).run(300));
  const auto find = [&](const char* what) {
    const auto from = lines.begin() + static_cast<std::ptrdiff_t>(lines.size() / 4);
    const auto found = std::find_if(from, lines.end(), [&](const std::string& line) {
      return line.find(what) != std::string::npos;
    });
    REQUIRE(found != lines.end());
    return static_cast<std::size_t>(found - lines.begin());
  };
  const auto with = [&](std::size_t at, const std::string& from, const std::string& to) {
    auto changed = lines;
    changed[at].replace(changed[at].find(from), from.size(), to);
    return replay_text(joined(changed));
  };
  SECTION("a decision") {
    const std::size_t at = find("\"rows\":\"");
    const auto outcome = with(at, "\"rows\":\"", "\"rows\":\"9999,");
    CHECK(outcome.what_came == verdict::different);
    CHECK(outcome.line == at + 1);
    CHECK(outcome.what.find("9999") != std::string::npos);
  }
  SECTION("a longer prompt") {
    const std::size_t at = find("\"prompt\":");
    const auto outcome = with(at, "\"prompt\":", "\"prompt\":1");
    CHECK(outcome.what_came == verdict::different);
    CHECK(outcome.line > at);
  }
  SECTION("an arrival less") {
    auto changed = lines;
    const std::size_t at = find("\"e\":\"arrive\"");
    changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(at));
    const auto outcome = replay_text(joined(changed));
    CHECK(outcome.what_came == verdict::different);
    CHECK(outcome.line > at);
  }
  SECTION("a decision less") {
    auto changed = lines;
    changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(find("\"e\":\"plan\"")));
    CHECK(replay_text(joined(changed)).what_came == verdict::different);
  }
}

TEST_CASE("what is no trace is said to be none, and a cut trace is as good as it is long",
          "[trace]") {
  CHECK(replay_text("").what_came == verdict::unreadable);
  CHECK(replay_text("{}\n").what_came == verdict::unreadable);
  CHECK(replay_text("prompt\n").what_came == verdict::unreadable);
  const std::string text = recorded(7, true).run(100);
  const auto begin = lines_of(text).front() + "\n";
  CHECK(replay_text(begin + begin).what_came == verdict::unreadable);
  CHECK(replay_text(text.substr(begin.size())).what_came == verdict::unreadable);
  CHECK(replay_text(begin + R"({"s":1,"t":1,"e":"dance"})"
                            "\n")
            .what_came == verdict::unreadable);
  for (std::size_t size = begin.size(); size < text.size(); size += 97) {
    const auto outcome = replay_text(text.substr(0, size));
    INFO("line " << outcome.line << ": " << outcome.what);
    REQUIRE(outcome.what_came == verdict::same);
    CHECK(outcome.cut == (text[size - 1] != '\n'));
  }
}

TEST_CASE("a damaged trace breaks nothing", "[trace]") {
  const std::string text = recorded(9, true).run(120) + recorded(10, false).run(1);
  std::mt19937_64 rng(1);
  const auto any = [&](std::size_t below) {
    return std::uniform_int_distribution<std::size_t>(0, below - 1)(rng);
  };
  const int n = std::getenv("TWILL_LONG") != nullptr ? 5000 : 150;
  for (int i = 0; i < n; ++i) {
    std::string damaged = text;
    for (std::size_t k = any(3) + 1; k > 0; --k)
      damaged[any(damaged.size())] = "0123456789,:-\"{}+*tz"[any(20)];
    replay_text(damaged);
    auto lines = lines_of(text);
    std::swap(lines[any(lines.size())], lines[any(lines.size())]);
    replay_text(joined(lines));
  }
  SUCCEED("no crash");
}

TEST_CASE("an engine records what its scheduler decides, without a word of any text", "[trace]") {
  using namespace scripted;
  twill::test::temp_folder folder;
  const std::string path = folder.file("trace");
  {
    config::options options;
    options.scheduler.trace = path;
    options.scheduler.max_running = 4;
    options.tenants = {{"small", {}, 1, 1, 2, 0}, {"large", {}, 3, 0, 0, 0}};
    auto plan = std::make_shared<script>();
    plan->n_blocks = 30;
    plan->max_context = 100;
    fixture b(options, plan);
    REQUIRE(b.ready());
    plan->delay_us = 300;
    plan->fail_at = 60;
    std::deque<recorder> all;
    for (int i = 0; i < 40; ++i) {
      auto asked = text_request("secretword " + prompt_of(i % 5, 20 + i), 30);
      asked.tenant = i % 2 == 0 ? "small" : "large";
      asked.client = "key " + asked.tenant;
      asked.sampling.n = i % 7 == 0 ? 2 : 1;
      all.emplace_back();
      const auto id = b.port.submit(asked, all.back().callback());
      if (i % 5 != 4) continue;
      REQUIRE(eventually([&] { return all.back().over() || all.back().n_tokens() >= 3; }));
      b.port.cancel(id);
      all.pop_back();
    }
    for (auto& r : all)
      REQUIRE(r.wait_over());
  }
  struct stat found = {};
  REQUIRE(::stat(path.c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0600);
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  CHECK(text.find("secretword") == std::string::npos);
  CHECK(text.find("key small") != std::string::npos);
  CHECK(text.find("\"e\":\"release\"") != std::string::npos);
  CHECK(text.find("\"e\":\"failed\"") != std::string::npos);
  const auto outcome = replay_text(text);
  INFO("line " << outcome.line << ": " << outcome.what);
  CHECK(outcome.what_came == verdict::same);
  CHECK(outcome.schedulers == 1);
  CHECK(outcome.decisions > 50);
}

TEST_CASE("an engine that goes on with requests decides the same again", "[trace]") {
  using namespace scripted;
  twill::test::temp_folder folder;
  const std::string path = folder.file("trace");
  config::options options;
  options.scheduler.trace = path;
  options.scheduler.max_running = 6;
  options.kv.prefix_cache = GENERATE(true, false);
  std::uint64_t hits = 0;
  {
    auto plan = std::make_shared<script>();
    plan->n_blocks = 60;
    fixture b(options, plan);
    REQUIRE(b.ready());
    std::deque<kept_events> whole, rest;
    const auto request_of = [](int i) {
      auto asked = text_request(prompt_of(i, 3 + 9 * i), 12 + i, 1.0f);
      asked.sampling.seed = static_cast<std::uint64_t>(i);
      asked.sampling.n = 1 + i % 3;
      return asked;
    };
    for (int i = 0; i < 6; ++i)
      b.port.submit(request_of(i), whole.emplace_back().callback());
    for (auto& kept : whole)
      REQUIRE(kept.recorded().wait_over());
    hits = b.port.stats().prefix_cache_hits;
    for (int i = 0; i < 6; ++i) {
      const auto before = whole[static_cast<std::size_t>(i)].all();
      for (std::size_t cut = 1; cut < before.size(); cut += 3) {
        auto again = request_of(i);
        again.made = made_by(before, cut, again.sampling.n);
        b.port.submit(again, rest.emplace_back().callback());
      }
    }
    for (auto& kept : rest) {
      REQUIRE(kept.recorded().wait_over());
      CHECK_FALSE(kept.recorded().error());
    }
    hits = b.port.stats().prefix_cache_hits - hits;
  }
  CHECK((hits > 0) == options.kv.prefix_cache);
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  CHECK(text.find("\"made\":\"") != std::string::npos);
  CHECK(text.find("over") != std::string::npos);
  const auto outcome = replay_text(text);
  INFO("line " << outcome.line << ": " << outcome.what);
  INFO("after\n" << before_line(text, outcome.line));
  CHECK(outcome.what_came == verdict::same);
  CHECK(outcome.decisions > 50);
}

TEST_CASE("what an earlier run has drawn is read with care from a trace", "[trace]") {
  const auto lines = lines_of(recorded(5, false).run(1));
  const auto with = [&](const std::string& made) {
    return replay_text(
        lines[0] + "\n" + lines[1] + "\n" +
        R"({"s":1,"t":9,"e":"arrive","r":1,"prompt":9,"new":5,"choices":2,"made":")" + made +
        "\"}\n");
  };
  for (const std::string made : {"1:,0:", "over,4:", "3:,over"})
    CHECK(with(made).what_came == verdict::same);
  for (const std::string made :
       {"1:", "1:,1:,1:", "over,over", "1,1", ",", "1:,", "5:,1:", "-1:,1:", "x:,1:", ":,1:",
        "1:0badcafe0badcafe0badcafe,1:", "1:0bad,1:", "99999999999:,1:", "1:zzzzzzzz,over"}) {
    INFO(made);
    CHECK(with(made).what_came == verdict::unreadable);
  }
}

TEST_CASE("a trace file ends at its bound, keeps the one before it, and is never a link",
          "[trace]") {
  twill::test::temp_folder folder;
  const std::string path = folder.file("trace");
  std::ofstream(path) << "older";
  auto opened = trace_file::open(path, 100);
  REQUIRE(opened.ok());
  CHECK(std::filesystem::file_size(path + ".1") == 5);
  const std::string line(39, 'x');
  for (int i = 0; i < 5; ++i)
    opened.value()->append(line + "\n");
  CHECK(std::filesystem::file_size(path) == 80);
  std::filesystem::remove(path);
  std::filesystem::create_symlink(path + ".1", path);
  auto linked = trace_file::open(path, 100);
  REQUIRE_FALSE(linked.ok());
  CHECK(linked.detail().find("scheduler.trace") != std::string::npos);
  CHECK_FALSE(trace_file::open(folder.file("no/folder"), 100).ok());
}
