// The default model through engine_port: output compared with recorded tokens, and 32 requests that
// run at once compared with each request run alone.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "actors/engine.hpp"
#include "tests/actors/engine_fixture.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/default_model.hpp"
#include "tests/paths.hpp"
#include "tests/support/json.hpp"
#include "tests/support/worse.hpp"

using namespace twill;
using scripted::recorder;
namespace test = twill::test;

namespace {

config::options f32_options() {
  config::options o;
  o.model.path = test::default_model_path();
  o.model.compute = "f32";
  o.kv.memory_bytes = 256 * mib;
  o.device.memory_bytes = 0;
  return o;
}

struct served {
  explicit served(const config::options& o)
      : engine(actors::start_engine(o)), port(engine->port()) {
    scripted::eventually([&] {
      return port.state() == actors::engine_state::ready ||
             port.state() == actors::engine_state::failed;
    });
    INFO(port.state_detail());
    REQUIRE(port.state() == actors::engine_state::ready);
  }
  std::unique_ptr<actors::engine> engine;
  actors::engine_port& port;
};

/// Waits longer than scripted tests do: real steps on a busy machine take their time.
bool finished(recorder& r) {
  for (int i = 0; i < 15; ++i)
    if (r.wait_over()) return true;
  return false;
}

/// 32 requests of many shapes. Those with even numbers are greedy.
std::vector<actors::request> mixed_requests() {
  const char* themes[] = {"The capital of France is",
                          "Once upon a time, there was a little girl who",
                          "def fibonacci(n):\n    ", "Water is made of"};
  std::vector<actors::request> all;
  for (int i = 0; i < 32; ++i) {
    std::string prompt;
    for (int k = 0; k <= (i * 5) % 23; ++k)
      prompt += std::string(themes[(i + k) % 4]) + " ";
    actors::request r;
    r.prompt = actors::text_prompt{prompt};
    r.sampling.max_tokens = 6 + (i * 11) % 43;
    r.sampling.temperature = i % 2 == 0 ? 0.0f : 0.9f;
    r.sampling.seed = 42u + static_cast<unsigned>(i);
    if (i % 4 == 1) r.sampling.top_p = 0.9f;
    if (i % 4 == 3) r.sampling.repetition_penalty = 1.2f;
    if (i % 8 == 6) r.sampling.n = 2;
    all.push_back(std::move(r));
  }
  return all;
}

} // namespace

TEST_CASE("greedy continuations and log-probabilities through the port equal the references",
          "[actors][model]") {
  served s(f32_options());
  const value golden = test::read_json_file(test::golden_dir() + "/smollm2/hf.json");
  const auto& prompts = test::list_of(test::at(golden, "prompts"));
  std::vector<recorder> all(prompts.size());
  std::vector<std::vector<actors::event>> events(prompts.size());
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    actors::request r;
    actors::token_prompt ids;
    for (const value& id : test::list_of(test::at(prompts[p], "ids")))
      ids.push_back(static_cast<std::int32_t>(*id.as_int()));
    r.prompt = ids;
    r.sampling.temperature = 0;
    r.sampling.max_tokens = r.sampling.min_tokens = 64; // the references exclude end ids
    r.sampling.logprobs = 10;
    auto record = all[p].callback();
    auto* kept = &events[p];
    s.port.submit(r, [record, kept](actors::event e) {
      kept->push_back(e);
      record(std::move(e));
    });
  }
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    REQUIRE(finished(all[p]));
    CHECK(all[p].broken() == "");
    std::vector<std::int32_t> expected;
    for (const value& id : test::list_of(test::at(prompts[p], "greedy_ids")))
      expected.push_back(static_cast<std::int32_t>(*id.as_int()));
    CHECK(all[p].result().ids == expected);
    CHECK(all[p].text() == test::text_of(test::at(prompts[p], "greedy_text")));
    const auto& chosen = test::list_of(test::at(prompts[p], "chosen_logprobs"));
    double worst = 0;
    std::size_t at = 0;
    for (const actors::event& e : events[p]) {
      for (const auto& token : e.tokens) {
        // The log-probabilities of the references were computed before end ids were excluded.
        worst = twill::test::worse(worst, std::abs(static_cast<double>(token.chosen.logprob) -
                                                   test::number_of(chosen[at++])));
        REQUIRE(token.top.size() == 10);
        CHECK(token.top[0].logprob >= token.top[9].logprob);
      }
    }
    CHECK(at == 64);
    CHECK(worst < 1e-3);
  }
}

TEST_CASE("32 requests at once, some cancelled, have exactly their solo texts", "[actors][model]") {
  const auto requests = mixed_requests();
  std::map<std::size_t, std::vector<std::string>> alone;
  {
    served s(f32_options());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      recorder r;
      s.port.submit(requests[i], r.callback());
      REQUIRE(finished(r));
      REQUIRE_FALSE(r.error());
      for (std::int32_t c = 0; c < requests[i].sampling.n; ++c)
        alone[i].push_back(r.text(static_cast<std::size_t>(c)));
    }
  }
  config::options tight = f32_options();
  tight.scheduler.max_step_tokens = 96; // prompts are cut, and computed beside decodes
  tight.kv.memory_bytes = 48 * mib;     // the blocks do not suffice
  served s(tight);
  std::vector<recorder> all(requests.size());
  std::vector<actors::request_id> ids;
  for (std::size_t i = 0; i < requests.size(); ++i)
    ids.push_back(s.port.submit(requests[i], all[i].callback()));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (i % 5 != 3) continue;
    if (i % 2 == 1) all[i].wait_tokens(2);
    s.port.cancel(ids[i]);
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (i % 5 == 3) continue;
    REQUIRE(finished(all[i]));
    CHECK(all[i].broken() == "");
    CHECK_FALSE(all[i].error());
    for (std::size_t c = 0; c < alone[i].size(); ++c)
      CHECK(all[i].text(c) == alone[i][c]);
  }
  CHECK(scripted::eventually([&] { return s.port.stats().kv_blocks_used == 0; }));
  CHECK(s.port.stats().executor_restarts == 0);
}

TEST_CASE("a chat is rendered, answered and stopped by the model's own end", "[actors][model]") {
  auto options = f32_options();
  options.model.compute = "auto";
  served s(options);
  actors::request r;
  actors::chat_prompt chat;
  chat.messages = value_list{value_object{{"role", "user"}, {"content", "Say hello."}}};
  r.prompt = chat;
  r.sampling.temperature = 0;
  r.sampling.max_tokens = 100;
  recorder seen;
  s.port.submit(r, seen.callback());
  REQUIRE(finished(seen));
  CHECK_FALSE(seen.error());
  CHECK_FALSE(seen.text().empty());
  CHECK(seen.text().find("<|im_end|>") == std::string::npos);
  REQUIRE(s.port.tokenize_chat("", chat).ok());
  CHECK(seen.use().prompt_tokens ==
        static_cast<std::int32_t>(s.port.tokenize_chat("", chat).value().size()));
  REQUIRE(s.port.models().size() == 1);
  CHECK(s.port.models()[0].has_chat_template);
  // For some seconds a thread, which rests most of the time, moves the weights to huge pages.
  double idle_share = 1;
  for (int second = 0; second < 30 && idle_share >= 0.01; ++second) {
    const auto before = std::clock();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    idle_share = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  }
  CHECK(idle_share < 0.01);
}

TEST_CASE("the same prompt again has the same tokens, from cached KV", "[actors][model]") {
  std::string prompt;
  for (int i = 0; i < 12; ++i)
    prompt += "Once upon a time, there was a little girl who liked the number " +
              std::to_string(i) + ". ";
  auto options = f32_options();
  std::vector<actors::event> events[3];
  recorder all[3];
  const auto run = [&](actors::engine_port& port, std::size_t i) {
    actors::request r;
    r.prompt = actors::text_prompt{prompt};
    r.sampling.temperature = 0;
    r.sampling.max_tokens = r.sampling.min_tokens = 40;
    r.sampling.logprobs = 1;
    auto record = all[i].callback();
    port.submit(r, [record, kept = &events[i]](actors::event e) {
      kept->push_back(e);
      record(std::move(e));
    });
    REQUIRE(finished(all[i]));
    CHECK_FALSE(all[i].error());
  };
  {
    served s(options);
    run(s.port, 0);
    run(s.port, 1);
    CHECK(s.port.stats().prefix_cache_hits ==
          static_cast<std::uint64_t>(all[1].use().cached_tokens));
  }
  options.kv.prefix_cache = false;
  served s(options);
  run(s.port, 2);
  const std::int32_t length = all[0].use().prompt_tokens;
  CHECK(length > 128);
  CHECK(all[0].use().cached_tokens == 0);
  CHECK(all[1].use().cached_tokens == (length - 1) / 16 * 16);
  CHECK(all[2].use().cached_tokens == 0);
  for (std::size_t i : {1, 2}) {
    CHECK(all[i].result().ids == all[0].result().ids);
    REQUIRE(events[i].size() == events[0].size());
    for (std::size_t e = 0; e < events[0].size(); ++e)
      for (std::size_t t = 0; t < events[0][e].tokens.size(); ++t)
        CHECK(events[i][e].tokens[t].chosen.logprob == events[0][e].tokens[t].chosen.logprob);
  }
}

TEST_CASE("a chat's next turn reuses the turn before", "[actors][model]") {
  const auto options = f32_options();
  const auto turn = [](actors::engine_port& port, value_list messages, recorder& seen) {
    actors::request r;
    actors::chat_prompt chat;
    chat.messages = std::move(messages);
    r.prompt = chat;
    r.sampling.temperature = 0;
    r.sampling.max_tokens = 60;
    port.submit(r, seen.callback());
    REQUIRE(finished(seen));
    REQUIRE_FALSE(seen.error());
  };
  const value_object question{{"role", "user"}, {"content", "Name three colours."}};
  const auto both_turns = [&](const std::string& answer) {
    return value_list{question, value_object{{"role", "assistant"}, {"content", answer}},
                      value_object{{"role", "user"}, {"content", "And three animals."}}};
  };
  recorder first, second, fresh;
  {
    served s(options);
    turn(s.port, {question}, first);
    turn(s.port, both_turns(first.text()), second);
  }
  // The chat template writes the answer as it was drawn, so its blocks are found as well.
  CHECK(second.use().cached_tokens > first.use().prompt_tokens);
  served s(options);
  turn(s.port, both_turns(first.text()), fresh);
  CHECK(fresh.use().cached_tokens == 0);
  CHECK(fresh.result().ids == second.result().ids);
}

TEST_CASE("a file that is no model leaves the engine failed, with the reason", "[actors][model]") {
  auto options = f32_options();
  options.model.path = "/nonexistent/model.gguf";
  auto engine = actors::start_engine(options);
  REQUIRE(
      scripted::eventually([&] { return engine->port().state() == actors::engine_state::failed; }));
  CHECK(engine->port().state_detail().find("/nonexistent/model.gguf") != std::string::npos);
  options = f32_options();
  options.kv.memory_bytes = 1000;
  auto small = actors::start_engine(options);
  REQUIRE(
      scripted::eventually([&] { return small->port().state() == actors::engine_state::failed; }));
  CHECK(small->port().state_detail().find("kv.memory") != std::string::npos);
}
