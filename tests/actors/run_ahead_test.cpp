// Engines that launch a step while the previous one computes must draw the same tokens as engines
// that wait for each step. A host computes a step when it is launched, so on a host these tests
// check only at what time a token becomes known to the engine and to the device. The distant device
// (tests/gpu/distant/), which computes as late as a GPU may, also tests the order of the device's
// work.
#include <memory>
#include <string>
#include <vector>

#include "actors/executor/decoder_runner.hpp"
#include "tests/actors/engine_fixture.hpp"
#include "tests/catch.hpp"
#include "tests/gpu/distant/distant_device.hpp"
#include "tests/gpu/tested_device.hpp"
#include "tests/paths.hpp"

using namespace scripted;

namespace {

std::shared_ptr<script> ahead() {
  auto plan = std::make_shared<script>();
  plan->ahead = true;
  return plan;
}

/// Requests of many kinds. Some of them need each token on the host before the next step.
std::vector<actors::request> requests() {
  std::vector<actors::request> all;
  for (std::int32_t i = 0; i < 24; ++i) {
    actors::request r;
    actors::token_prompt prompt;
    for (std::int32_t k = 0; k <= (i * 7) % 19; ++k)
      prompt.push_back(3 + (i + 5 * k) % 90);
    r.prompt = prompt;
    r.sampling.max_tokens = 1 + (i * 11) % 30;
    r.sampling.temperature = i % 2 == 0 ? 0.0f : 0.9f;
    r.sampling.seed = 42u + static_cast<unsigned>(i);
    r.sampling.ignore_eos = i % 3 == 0;
    if (i % 4 == 1) r.sampling.logprobs = 2;
    if (i % 6 == 5) r.sampling.repetition_penalty = 1.2f;
    if (i % 8 == 6) r.sampling.n = 2;
    if (i % 8 == 3) r.sampling.min_tokens = 2;
    all.push_back(std::move(r));
  }
  return all;
}

std::vector<std::vector<std::int32_t>> served_by(actors::run_order order,
                                                 const std::string& kind = test::tested_kind()) {
  config::options options;
  options.device.kind = kind;
  if (test::tests_cuda()) test::report_launches();
  options.model.path = test::golden_dir() + "/llama-tiny-fp16";
  options.model.compute = "f32";
  options.scheduler.max_step_tokens = 64;
  options.scheduler.max_running = 8;
  const auto engine = actors::start_engine_with(
      options, actors::make_decoder_runners(options, {}, {}, nullptr, order));
  auto& port = engine->port();
  REQUIRE(eventually([&] { return port.state() == actors::engine_state::ready; }));
  const auto asked = requests();
  std::vector<recorder> heard(asked.size());
  for (std::size_t i = 0; i < asked.size(); ++i)
    port.submit(asked[i], heard[i].callback());
  std::vector<std::vector<std::int32_t>> tokens;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    INFO("request " << i);
    REQUIRE(heard[i].wait_over());
    CHECK(heard[i].broken() == "");
    CHECK_FALSE(heard[i].error());
    for (std::size_t choice = 0; choice < 2; ++choice)
      tokens.push_back(heard[i].result(choice).ids);
  }
  return tokens;
}

} // namespace

TEST_CASE("a decoder that runs ahead draws the tokens of one that waits for each step",
          "[actors][golden]") {
  const auto waited = served_by(actors::run_order::waiting);
  CHECK(served_by(actors::run_order::ahead) == waited);
}

TEST_CASE("an engine on one more kind of chip serves what it serves when it waits for each step",
          "[actors][golden]") {
  if (!test::tests_host()) return;
  const test::distant_kind chip;
  const std::int64_t launched = gpu::detail::launches;
  const auto waited = served_by(actors::run_order::waiting, "distant");
  CHECK(served_by(actors::run_order::by_device, "distant") == waited);
  CHECK(gpu::detail::launches > launched);
}

TEST_CASE("a chip that is lost in the middle of streams ends them and the engine", "[actors]") {
  if (!test::tests_host()) return;
  const auto order = GENERATE(actors::run_order::waiting, actors::run_order::by_device);
  test::distant_kind chip;
  config::options options;
  options.device.kind = "distant";
  options.model.path = test::golden_dir() + "/llama-tiny-fp16";
  options.scheduler.max_running = 2;
  const auto engine = actors::start_engine_with(
      options, actors::make_decoder_runners(options, {}, {}, nullptr, order));
  auto& port = engine->port();
  REQUIRE(eventually([&] { return port.state() == actors::engine_state::ready; }));
  CHECK(port.stats().device_outside_bytes > 0);
  std::vector<recorder> heard(4);
  for (recorder& one : heard) {
    actors::request asked;
    asked.prompt = actors::token_prompt{5, 6, 7};
    asked.sampling.max_tokens = -1;
    asked.sampling.ignore_eos = true;
    port.submit(asked, one.callback());
  }
  REQUIRE(eventually([&] { return heard[0].n_tokens() > 2 || heard[1].n_tokens() > 2; }));
  chip.lose();
  int ended = 0; // ended by the loss; early requests may have reached the end of their context
  for (recorder& one : heard) {
    REQUIRE(one.wait_over());
    ended += one.error().has_value() ? 1 : 0;
  }
  CHECK(ended >= 2);
  CHECK(eventually([&] { return port.state() == actors::engine_state::lost; }));
  CHECK(port.state_detail().find("it is gone") != std::string::npos);
}

TEST_CASE("a stream's steps run ahead of each other, all but those that need the token itself",
          "[actors]") {
  auto plan = ahead();
  plan->delay_us = 500; // long enough that the next plan arrives before the step ends
  fixture b({}, plan);
  REQUIRE(b.ready());
  const auto texts_of = [&](float penalty) {
    recorder r;
    auto asked = text_request("Hello world", 60, 1.0f);
    asked.sampling.seed = 7;
    asked.sampling.ignore_eos = true;
    asked.sampling.repetition_penalty = penalty;
    b.port.submit(asked, r.callback());
    REQUIRE(r.wait_over());
    CHECK(r.broken() == "");
    return r.text();
  };
  CHECK(texts_of(1.0f) == solo("Hello world", 60, 1.0f, 7, 0, true).text);
  CHECK(plan->fed_rows > 20);
  CHECK(plan->steps_ahead >= plan->fed_rows);
  const std::int64_t fed = plan->fed_rows;
  CHECK(texts_of(1.1f) == solo("Hello world", 60, 1.0f, 7, 0, true).text); // penalties are ignored
  CHECK(plan->fed_rows == fed);
  CHECK(b.no_blocks_used());
}
