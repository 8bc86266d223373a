// Requests for hidden states (embeddings) through engine_port, the interface of an engine. With the
// models of golden folders, the states are compared with values that transformers computed, and
// have the same bits however requests are batched and split into steps. With a scripted runner in
// place of a model (scripted_runner.hpp), the requests are preempted, cancelled and disturbed in
// every other way in which a request can be disturbed.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <typeinfo>
#include <utility>
#include <vector>

#include "actors/detail/message_probe.hpp"
#include "actors/engine.hpp"
#include "actors/messages.hpp"
#include "tests/actors/engine_fixture.hpp"
#include "tests/actors/message_target.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/golden_folder.hpp"
#include "tests/paths.hpp"

using namespace twill;
using namespace scripted;
using actors::pooling;
using numbers = std::vector<float>;

namespace {

/// The answer to one request for hidden states.
class answer {
public:
  actors::event_callback callback() {
    return [state = state_](actors::event e) {
      const std::lock_guard lock(state->mutex);
      state->events.push_back(std::move(e));
      state->changed.notify_all();
    };
  }
  bool wait_over() {
    std::unique_lock lock(state_->mutex);
    return state_->changed.wait_for(
        lock, patience, [&] { return !state_->events.empty() && state_->events.back().last; });
  }
  std::size_t n_events() const {
    const std::lock_guard lock(state_->mutex);
    return state_->events.size();
  }
  /// The values of a request that ended well, which came in one event.
  numbers values() {
    REQUIRE(wait_over());
    const std::lock_guard lock(state_->mutex);
    REQUIRE(state_->events.size() == 1);
    const actors::event& e = state_->events.front();
    REQUIRE_FALSE(e.error);
    CHECK(e.started);
    CHECK(e.finish == actors::finish_reason::stop);
    CHECK(e.tokens.empty());
    CHECK(e.use.completion_tokens == 0);
    REQUIRE(e.embedding != nullptr);
    return *e.embedding;
  }
  bool failed() const {
    const std::lock_guard lock(state_->mutex);
    return state_->events.back().error.has_value();
  }
  actors::request_error error() {
    REQUIRE(wait_over());
    const std::lock_guard lock(state_->mutex);
    REQUIRE(state_->events.back().error);
    return *state_->events.back().error;
  }
  actors::usage use() {
    REQUIRE(wait_over());
    const std::lock_guard lock(state_->mutex);
    return state_->events.back().use;
  }

private:
  struct state {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<actors::event> events;
  };
  std::shared_ptr<state> state_ = std::make_shared<state>();
};

template <class Prompt>
actors::request pooled(Prompt prompt, pooling how = pooling::last) {
  actors::request r;
  r.prompt = std::move(prompt);
  r.pooling = how;
  return r;
}

numbers unit(const numbers& x) {
  double sum = 0;
  for (const float v : x)
    sum += double{v} * double{v};
  numbers out;
  for (const float v : x)
    out.push_back(static_cast<float>(double{v} / std::sqrt(sum)));
  return out;
}

bool same_bits(const numbers& a, const numbers& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

config::options golden_engine(const std::string& name) {
  config::options options;
  options.model.path = test::golden_dir() + "/" + name;
  options.model.compute = "f32";
  options.kv.type = "f32";
  options.kv.memory_bytes = 16 * mib;
  return options;
}

constexpr pooling both_ways[] = {pooling::last, pooling::mean};

/// The embeddings of all prompts with both kinds of pooling, one request after the other.
std::vector<numbers> one_by_one(const config::options& options, const test::golden_folder& c) {
  const auto engine = actors::start_engine(options);
  auto& port = engine->port();
  REQUIRE(eventually([&] { return port.state() == actors::engine_state::ready; }));
  std::vector<numbers> all;
  for (const auto& prompt : c.prompts)
    for (const pooling how : both_ways) {
      answer a;
      port.submit(pooled(prompt.ids, how), a.callback());
      all.push_back(a.values());
    }
  return all;
}

} // namespace

TEST_CASE("hidden states are those of transformers, last and mean", "[actors][golden]") {
  for (const std::string name : {"llama-tiny-fp16", "llama3-style-tied-bf16", "mistral-tiny-bf16",
                                 "mistral-swa-tiny-bf16", "opt-tiny-fp32", "opt-350m-style-fp16"}) {
    CAPTURE(name);
    const test::golden_folder c(name);
    const auto wanted =
        test::read_f32_tensors(test::golden_dir() + "/" + name + "/golden.hidden.safetensors");
    auto options = golden_engine(name);
    options.scheduler.max_step_tokens = 16; // prompts are cut into chunks
    options.scheduler.max_running = 8;
    const auto all = one_by_one(options, c);
    for (std::size_t i = 0; i < all.size(); ++i) {
      CAPTURE(i);
      const auto key = "p" + std::to_string(i / 2) + (i % 2 == 0 ? ".last" : ".mean");
      CHECK(test::largest_difference(unit(all[i]), unit(wanted.at(key))) < 1e-4);
    }
  }
}

TEST_CASE("hidden states have the same bits alone, together, cut, cached and beside decodes",
          "[actors][golden]") {
  for (const std::string name : {"llama-tiny-fp16", "opt-350m-style-fp16", "qwen-v1-ntk-logn-bf16",
                                 "chatglm3-tiny-fp16", "baichuan2-13b-tiny-bf16"}) {
    CAPTURE(name);
    const test::golden_folder c(name);
    const auto alone = one_by_one(golden_engine(name), c);
    for (const std::int32_t step_tokens : {7, 24, 512}) {
      CAPTURE(step_tokens);
      auto options = golden_engine(name);
      options.scheduler.max_step_tokens = step_tokens;
      options.scheduler.max_running = 6;
      const auto engine = actors::start_engine(options);
      auto& port = engine->port();
      REQUIRE(eventually([&] { return port.state() == actors::engine_state::ready; }));
      std::vector<recorder> decodes(2);
      for (auto& decode : decodes) {
        actors::request r;
        r.prompt = c.prompts.back().ids;
        r.sampling.max_tokens = 32;
        r.sampling.temperature = 0;
        r.sampling.ignore_eos = true;
        port.submit(r, decode.callback());
      }
      std::vector<answer> answers(2 * alone.size()); // the second half comes from a full cache
      for (std::size_t i = 0; i < answers.size(); ++i) {
        const std::size_t of = i % alone.size();
        port.submit(pooled(c.prompts[of / 2].ids, both_ways[of % 2]), answers[i].callback());
      }
      for (std::size_t i = 0; i < answers.size(); ++i) {
        CAPTURE(i);
        CHECK(same_bits(answers[i].values(), alone[i % alone.size()]));
      }
      for (auto& decode : decodes) {
        REQUIRE(decode.wait_over());
        CHECK(decode.result().ids == c.prompts.back().greedy);
      }
    }
  }
}

namespace {

/// A step_runner that computes no model (scripted_runner.hpp). The hidden state that it returns for
/// a row has two numbers: a hash of what the sequence's KV holds up to the row's position, and the
/// row's token.
class pooling_runner final : public actors::step_runner {
public:
  explicit pooling_runner(std::shared_ptr<script> s) : script_(s), inner_(std::move(s)) {}

  actors::result<actors::runner_info> load() override {
    kv_.assign(static_cast<std::size_t>(script_->n_blocks * script_->block_tokens), -1);
    auto info = inner_.load();
    if (!info.ok()) return info;
    auto model = std::make_shared<models::model>(*info.value().model);
    model->spec.embedding_size = 2;
    info.value().model = std::move(model);
    return info;
  }
  actors::result<nothing> run(const actors::executor_step& batch,
                              actors::step_samples& out) override {
    auto ran = inner_.run(batch, out);
    if (!ran.ok()) return ran;
    write(batch);
    out.hidden_size = 2;
    out.hidden.clear();
    for (auto row = batch.logit_rows.end() - batch.n_hidden; row != batch.logit_rows.end(); ++row) {
      std::size_t s = 0;
      while (batch.first_token[s + 1] <= *row)
        ++s;
      const auto at = static_cast<std::size_t>(*row);
      std::uint64_t h = 1;
      for (std::int32_t p = 0; p <= batch.positions[at]; ++p)
        h = mix(h, static_cast<std::uint64_t>(place(batch, s, p)));
      out.hidden.push_back(static_cast<float>(h % 4096));
      out.hidden.push_back(static_cast<float>(batch.tokens[at]));
    }
    return ran;
  }
  actors::result<nothing> begin(const actors::executor_step& batch,
                                std::function<void()> done) override {
    write(batch);
    return inner_.begin(batch, std::move(done));
  }
  actors::result<nothing> end(actors::step_samples& out) override { return inner_.end(out); }
  std::int64_t memory_used_bytes() const override { return 4096; }
  actors::result<nothing> save_block(std::int32_t block, void* to) override {
    return inner_.save_block(block, to);
  }
  actors::result<nothing> load_block(std::int32_t block, const void* from) override {
    return inner_.load_block(block, from);
  }

private:
  std::int32_t& place(const actors::executor_step& batch, std::size_t s, std::int32_t position) {
    const auto column = static_cast<std::size_t>(position / script_->block_tokens);
    const std::int32_t block =
        batch.block_table.at(s * static_cast<std::size_t>(batch.max_blocks) + column);
    return kv_.at(
        static_cast<std::size_t>(block * script_->block_tokens + position % script_->block_tokens));
  }
  void write(const actors::executor_step& batch) {
    for (std::size_t s = 0; s < batch.kv_lengths.size(); ++s)
      for (std::int32_t r = batch.first_token[s]; r < batch.first_token[s + 1]; ++r)
        place(batch, s, batch.positions[static_cast<std::size_t>(r)]) =
            batch.tokens[static_cast<std::size_t>(r)];
  }

  std::shared_ptr<script> script_;
  runner inner_;
  std::vector<std::int32_t> kv_;
};

/// The hidden states that pooling_runner computes for a prompt, pooled.
numbers expected(const std::string& prompt, pooling how) {
  std::uint64_t h = 1;
  double hashes = 0, tokens = 0;
  for (const unsigned char c : prompt) {
    h = mix(h, c);
    hashes += static_cast<double>(h % 4096);
    tokens += c;
  }
  if (how == pooling::last)
    return {static_cast<float>(h % 4096),
            static_cast<float>(static_cast<unsigned char>(prompt.back()))};
  const auto n = static_cast<double>(prompt.size());
  return {static_cast<float>(hashes / n), static_cast<float>(tokens / n)};
}

struct pooling_fixture {
  explicit pooling_fixture(config::options options = {},
                           std::shared_ptr<script> s = std::make_shared<script>())
      : plan(std::move(s)),
        engine(actors::start_engine_with(options,
                                         [p = plan]() -> std::unique_ptr<actors::step_runner> {
                                           return std::make_unique<pooling_runner>(p);
                                         })),
        port(engine->port()) {
    REQUIRE(eventually([&] { return port.state() == actors::engine_state::ready; }));
  }
  ~pooling_fixture() { check_at_rest(port); }

  answer submit(const std::string& prompt, pooling how) {
    answer a;
    port.submit(pooled(actors::text_prompt{prompt}, how), a.callback());
    return a;
  }

  /// Sequences that the scheduler knows, running and waiting.
  std::size_t scheduled() const {
    auto count = std::make_shared<std::promise<std::size_t>>();
    auto counted = count->get_future();
    port.describe([count](const std::vector<actors::scheduler_snapshot>& seen) {
      count->set_value(seen.empty() ? 0 : seen.front().sequences.size());
    });
    return counted.get();
  }

  std::shared_ptr<script> plan;
  std::unique_ptr<actors::engine> engine;
  actors::engine_port& port;
};

} // namespace

TEST_CASE("the last token's state begins behind the cache, and a mean computes the whole prompt",
          "[actors]") {
  pooling_fixture b;
  const std::string prompt = prompt_of(1, 44);
  for (const auto& [how, cached, computed] :
       {std::tuple{pooling::last, 0, 44}, std::tuple{pooling::last, 40, 4},
        std::tuple{pooling::mean, 0, 44}, std::tuple{pooling::last, 40, 4}}) {
    const auto before = b.plan->computed.load();
    auto a = b.submit(prompt, how);
    CHECK(a.values() == expected(prompt, how));
    CHECK(a.use().prompt_tokens == 44);
    CHECK(a.use().cached_tokens == cached);
    CHECK(b.plan->computed - before == computed);
  }
  // The counters may be updated after the event was sent.
  CHECK(eventually([&] {
    const auto stats = b.port.stats();
    return stats.finished_stop == 4 && stats.prompt_tokens == 4 * 44;
  }));
  CHECK(b.port.stats().generation_tokens == 0);
}

TEST_CASE("inputs that come together share steps", "[actors]") {
  pooling_fixture b;
  b.plan->hold();
  std::vector<answer> all;
  for (int i = 0; i < 40; ++i)
    all.push_back(b.submit(prompt_of(i, 3 + i % 5), both_ways[i % 2]));
  REQUIRE(b.plan->step_waits());
  REQUIRE(eventually([&] { return b.scheduled() == 40; }));
  b.plan->open();
  for (int i = 0; i < 40; ++i)
    CHECK(all[static_cast<std::size_t>(i)].values() ==
          expected(prompt_of(i, 3 + i % 5), both_ways[i % 2]));
  CHECK(b.plan->widest > 8);
  CHECK(b.plan->steps < 12);
}

TEST_CASE("hidden states are right under pressure, with preemptions, decodes and cancels",
          "[actors]") {
  auto plan = std::make_shared<script>();
  plan->n_blocks = 24;
  config::options options;
  options.scheduler.max_step_tokens = 13;
  options.scheduler.max_running = 6;
  pooling_fixture b(options, plan);
  std::vector<recorder> texts(6);
  for (std::size_t i = 0; i < texts.size(); ++i)
    b.port.submit(text_request(prompt_of(static_cast<int>(i), 9), 50), texts[i].callback());
  std::vector<std::pair<answer, bool>> all;
  for (int i = 0; i < 60; ++i) {
    answer a;
    const auto id = b.port.submit(
        pooled(actors::text_prompt{prompt_of(i % 7, 1 + i % 60)}, both_ways[i % 2]), a.callback());
    all.emplace_back(a, i % 5 == 4);
    if (i % 5 == 4) b.port.cancel(id);
  }
  for (int i = 0; i < 60; ++i) {
    CAPTURE(i);
    auto& [a, cancelled] = all[static_cast<std::size_t>(i)];
    if (!cancelled) CHECK(a.values() == expected(prompt_of(i % 7, 1 + i % 60), both_ways[i % 2]));
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    REQUIRE(texts[i].wait_over());
    CHECK(texts[i].text() == solo(prompt_of(static_cast<int>(i), 9), 50).text);
  }
  CHECK(b.port.stats().preemptions > 0);
}

TEST_CASE("a cancelled request for hidden states gets no further event", "[actors]") {
  pooling_fixture b;
  b.plan->hold();
  answer a;
  const auto id =
      b.port.submit(pooled(actors::text_prompt{prompt_of(1, 30)}, pooling::mean), a.callback());
  REQUIRE(b.plan->step_waits());
  b.port.cancel(id);
  b.plan->open();
  CHECK(eventually([&] { return b.port.stats().kv_blocks_used == 0; }));
  CHECK(a.n_events() == 0);
}

TEST_CASE("a failed step computes hidden states once more, a second one ends the request",
          "[actors]") {
  for (const pooling how : both_ways) {
    config::options options;
    options.scheduler.max_step_tokens = 16;
    pooling_fixture b(options);
    const std::string prompt = prompt_of(3, 40);
    b.plan->fail_at = b.plan->steps + 1; // the step of the second chunk
    CHECK(b.submit(prompt, how).values() == expected(prompt, how));
    CHECK(b.port.stats().executor_restarts == 1);
    b.plan->fail_always = true;
    auto lost = b.submit(prompt, how);
    CHECK(lost.error().code == actors::errc::executor_failed);
    b.plan->fail_always = false;
    CHECK(eventually([&] { return b.port.state() == actors::engine_state::ready; }));
    CHECK(b.submit(prompt, how).values() == expected(prompt, how));
  }
}

TEST_CASE("requests for hidden states end before a drain does", "[actors]") {
  pooling_fixture b;
  b.plan->hold();
  auto a = b.submit(prompt_of(1, 12), pooling::last);
  REQUIRE(b.plan->step_waits());
  std::atomic<bool> drained{false};
  b.port.drain([&] { drained = true; });
  auto late = b.submit("late", pooling::last);
  CHECK(late.error().code == actors::errc::shutting_down);
  CHECK_FALSE(drained);
  b.plan->open();
  CHECK(a.values() == expected(prompt_of(1, 12), pooling::last));
  CHECK(eventually([&] { return drained.load(); }));
}

TEST_CASE("a prompt may fill the context, and what is refused is named", "[actors]") {
  pooling_fixture b;
  for (const pooling how : both_ways)
    CHECK(b.submit(prompt_of(1, 200), how).values() == expected(prompt_of(1, 200), how));
  const auto refused = [&](actors::request asked) {
    answer a;
    b.port.submit(std::move(asked), a.callback());
    return a.error();
  };
  auto longer = pooled(actors::token_prompt(201, 65));
  longer.prompt_field = "input[3]";
  const auto too_long = refused(longer);
  CHECK(too_long.code == actors::errc::context_too_long);
  CHECK(too_long.param == "input[3]");
  CHECK(too_long.message == "`input[3]` must be <= 200 tokens (the context limit), got 201");
  auto shorter = pooled(actors::text_prompt{"x"});
  shorter.dimensions = 1;
  CHECK(refused(shorter).param == "dimensions");
  CHECK(refused(pooled(actors::token_prompt{})).code == actors::errc::empty_prompt);

  auto cut = pooled(actors::text_prompt{"abcdef"});
  cut.truncate_prompt_tokens = 2;
  for (const bool first : {false, true}) {
    cut.truncate_to_first = first;
    answer a;
    b.port.submit(cut, a.callback());
    CHECK(a.values() == expected(first ? "ab" : "ef", pooling::last));
    CHECK(a.use().prompt_tokens == 2);
  }
  // Parameters that concern an output have no effect.
  auto wordy = pooled(actors::text_prompt{"abc"});
  wordy.sampling.n = 3;
  wordy.sampling.max_tokens = 7;
  wordy.sampling.temperature = -5;
  wordy.prompt_logprobs = 2;
  wordy.dimensions = 2;
  answer a;
  b.port.submit(wordy, a.callback());
  CHECK(a.values() == expected("abc", pooling::last));
}

TEST_CASE("a device that runs ahead computes hidden states between decodes", "[actors]") {
  auto plan = std::make_shared<script>();
  plan->ahead = true;
  pooling_fixture b({}, plan);
  std::vector<recorder> texts(3);
  for (std::size_t i = 0; i < texts.size(); ++i)
    b.port.submit(text_request(prompt_of(static_cast<int>(i), 9), 60), texts[i].callback());
  REQUIRE(texts[0].wait_tokens(2));
  for (int i = 0; i < 20; ++i)
    CHECK(b.submit(prompt_of(i, 1 + 2 * i), both_ways[i % 2]).values() ==
          expected(prompt_of(i, 1 + 2 * i), both_ways[i % 2]));
  for (std::size_t i = 0; i < texts.size(); ++i) {
    REQUIRE(texts[i].wait_over());
    CHECK(texts[i].text() == solo(prompt_of(static_cast<int>(i), 9), 60).text);
  }
}

namespace {

using kind = actors::actor_kind;
std::atomic<const message_target*> next_death{nullptr};

void die_once(kind actor, const std::type_info& message) {
  const message_target* d = next_death;
  if (d == nullptr || !d->is(actor, message)) return;
  if (next_death.compare_exchange_strong(d, nullptr))
    throw std::runtime_error("killed by the test");
}

} // namespace

TEST_CASE("whichever actor dies, a request for hidden states ends and the next one is served",
          "[actors]") {
  const message_target deaths[] = {target<actors::start_request>(kind::session),
                                   target<actors::prompt_pooled>(kind::session),
                                   target<actors::submit_prompt>(kind::batcher),
                                   target<actors::step_result_ptr>(kind::batcher),
                                   target<actors::block_request>(kind::kv_allocator),
                                   target<actors::step_plan_ptr>(kind::executor)};
  for (const message_target& d : deaths) {
    INFO(d.name());
    next_death = &d;
    actors::installed_probe() = die_once;
    {
      config::options options;
      options.scheduler.restart_delay = options.scheduler.restart_delay_max = 1ms;
      options.scheduler.max_step_tokens = 16;
      pooling_fixture b(options);
      for (int i = 0; i < 2; ++i) {
        REQUIRE(eventually([&] { return b.port.state() == actors::engine_state::ready; }));
        auto a = b.submit(prompt_of(i, 30), both_ways[i]);
        REQUIRE(a.wait_over());
        if (i == 0 && a.failed())
          CHECK(a.error().code == actors::errc::executor_failed);
        else
          CHECK(a.values() == expected(prompt_of(i, 30), both_ways[i]));
      }
      CHECK(next_death == nullptr);
    }
    actors::installed_probe() = nullptr;
  }
}
