// device_sampler, which draws the tokens of a step: all its memory is taken at the start, and
// splitting the draws into passes does not change what is drawn.
#include "actors/executor/device_sampler.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/catch.hpp"
#include "tests/gpu/portable_ops.hpp"
#include "tests/gpu/tested_device.hpp"

using namespace twill;
using namespace twill::actors;

TEST_CASE("a step with more penalties than the arrays hold is drawn in passes, without new memory",
          "[actors]") {
  constexpr std::int32_t vocab = 700, rows = 6;
  // Test the device's own ops, and the portable ops, which take more scratch memory.
  const gpu::detail::op_backends* const ops =
      GENERATE(false, true) ? test::portable_ops() : nullptr;
  if (ops != nullptr && !test::tests_host()) return;
  auto dev =
      ops == nullptr
          ? test::open_tested({.threads = 1, .memory_bytes = std::int64_t{64} << 20})
          : gpu::device::open(
                {.kind = "host", .threads = 1, .memory_bytes = std::int64_t{64} << 20, .ops = ops})
                .value();
  auto sampler = device_sampler::create(*dev, rows, 2, vocab);
  REQUIRE(sampler.ok());
  auto memory = dev->allocate(sizeof(float) * vocab * rows, "logits");
  REQUIRE(memory.ok());
  const auto used = dev->memory_used();

  config::sampling_params params;
  params.temperature = 1;
  params.repetition_penalty = 1.3f;
  params.logprobs = 2;
  std::vector<gpu::token_count> counts;
  std::vector<gpu::token_bias> biases;
  for (std::int32_t id = 0; id < vocab; ++id) {
    counts.push_back({id, id % 3, id % 2});
    biases.push_back({id, static_cast<float>(id % 5)});
  }
  const std::vector<std::uint32_t> mask((vocab + 31) / 32, 0xfff0ffffU);
  std::vector<draw_spec> draws(rows); // 6 x 700 counts; the array holds 6 x 256
  for (std::size_t i = 0; i < draws.size(); ++i) {
    draws[i].params = &params;
    draws[i].seed = 100 + i;
    draws[i].counter = 7;
    draws[i].counts = counts;
    draws[i].biases = biases;
    if (i % 2 == 1) draws[i].mask = mask;
  }
  const auto fill = [&] {
    std::vector<float> logits;
    for (std::int32_t i = 0; i < vocab * rows; ++i)
      logits.push_back(std::sin(static_cast<float>(i) * 0.37f) * 4);
    dev->upload(memory.value().data(), logits.data(), logits.size() * sizeof(float));
  };
  const auto view = [&](std::int64_t first, std::int64_t n) {
    return gpu::view_2d(static_cast<float*>(memory.value().data()) + first * vocab, gpu::dtype::f32,
                        n, vocab, vocab);
  };
  step_samples together, alone;
  fill();
  REQUIRE(sampler.value().draw(*dev, view(0, rows), draws, together).ok());
  REQUIRE(together.tokens.size() == rows);
  fill();
  for (std::size_t i = 0; i < draws.size(); ++i) {
    REQUIRE(sampler.value()
                .draw(*dev, view(static_cast<std::int64_t>(i), 1), {&draws[i], 1}, alone)
                .ok());
    CHECK(together.tokens[i] == alone.tokens[0]);
    CHECK(together.logprobs[i] == alone.logprobs[0]);
    CHECK(together.top_ids[2 * i] == alone.top_ids[0]);
    CHECK(together.top_ids[2 * i + 1] == alone.top_ids[1]);
  }
  CHECK(dev->memory_used() == used);
}

TEST_CASE("draws that travel with a step come back in one copy, and are those of their own upload",
          "[actors]") {
  constexpr std::int32_t vocab = 700, rows = 6;
  auto dev = test::open_tested({.threads = 1, .memory_bytes = std::int64_t{64} << 20});
  auto made = device_sampler::create(*dev, rows, 3, vocab);
  REQUIRE(made.ok());
  device_sampler& sampler = made.value();
  const auto logits = dev->allocate(sizeof(float) * vocab * rows, "logits").value();
  const auto payload =
      dev->allocate(static_cast<std::size_t>(device_sampler::most_described_bytes(rows)), "cargo")
          .value();
  const auto view = gpu::view_2d(logits.data(), gpu::dtype::f32, rows, vocab, vocab);
  const auto fill = [&] {
    std::vector<float> values;
    for (std::int32_t i = 0; i < vocab * rows; ++i)
      values.push_back(std::sin(static_cast<float>(i) * 0.37f) * 4);
    dev->upload(logits.data(), values.data(), values.size() * sizeof(float));
  };
  config::sampling_params params;
  params.temperature = 1;
  params.repetition_penalty = 1.3f;
  const std::vector<gpu::token_count> counts{{3, 1, 2}, {5, 0, 1}, {600, 2, 0}};
  const std::vector<gpu::token_bias> biases{{7, 2.5f}, {8, -1.0f}};
  const std::vector<std::uint32_t> mask((vocab + 31) / 32, 0xfff0ffffU);
  std::vector<draw_spec> draws(rows);
  for (const int logprobs : {-1, 2}) {
    params.logprobs = logprobs;
    for (std::size_t i = 0; i < draws.size(); ++i) {
      draws[i].params = &params;
      draws[i].seed = 100 + i;
      draws[i].counter = 7;
      if (i % 2 == 0) draws[i].counts = counts;
      if (i % 3 == 0) draws[i].biases = biases;
      if (i % 2 == 1) draws[i].mask = mask;
    }
    step_samples apart, together;
    fill();
    const auto* at = static_cast<const unsigned char*>(payload.data());
    const auto bytes = sampler.describe(draws, at);
    REQUIRE_FALSE(bytes.empty());
    dev->upload(payload.data(), bytes.data(), bytes.size());
    const gpu::exchange_counts before = dev->exchanges();
    REQUIRE(sampler.draw(*dev, view, draws, together).ok());
    CHECK(dev->exchanges().uploads - before.uploads == 1); // the masks
    CHECK(dev->exchanges().downloads - before.downloads == 1);
    CHECK(dev->exchanges().waits == before.waits);
    CHECK(std::vector<std::int32_t>(sampler.drawn(), sampler.drawn() + rows) == together.tokens);
    fill();
    REQUIRE(sampler.draw(*dev, view, draws, apart).ok());
    CHECK(together.tokens == apart.tokens);
    CHECK(together.logprobs == apart.logprobs);
    CHECK(together.top_ids == apart.top_ids);
    CHECK(together.top_logprobs == apart.top_logprobs);
  }
  params.temperature = 0;
  params.logprobs = -1;
  params.repetition_penalty = 1;
  for (draw_spec& d : draws)
    d = {.params = &params};
  CHECK(sampler.describe(draws, nullptr).empty()); // these draws need no payload
}

TEST_CASE("draws that are launched before others are collected stay apart", "[actors]") {
  constexpr std::int32_t vocab = 100, rows = 4;
  auto dev = gpu::device::open({.kind = "host", .threads = 1}).value();
  auto made = device_sampler::create(*dev, rows, 2, vocab);
  REQUIRE(made.ok());
  device_sampler& sampler = made.value();
  const auto logits = dev->allocate(sizeof(float) * vocab * rows, "logits").value();
  const auto fill = [&](std::int32_t best) {
    std::vector<float> values(vocab * rows, 0.0f);
    for (std::int32_t r = 0; r < rows; ++r)
      values[static_cast<std::size_t>(r * vocab + best + r)] = 5;
    dev->upload(logits.data(), values.data(), values.size() * sizeof(float));
  };
  config::sampling_params plain, received;
  plain.temperature = received.temperature = 0;
  received.logprobs = 2;
  const auto launch = [&](std::int32_t best, const config::sampling_params& params, int n) {
    fill(best);
    const std::vector<draw_spec> draws(static_cast<std::size_t>(n), {.params = &params});
    REQUIRE(
        sampler.launch(*dev, gpu::view_2d(logits.data(), gpu::dtype::f32, n, vocab, vocab), draws)
            .ok());
  };
  step_samples out;
  launch(10, received, 3);
  launch(20, plain, 4);
  sampler.collect(out);
  CHECK(out.tokens == std::vector<std::int32_t>{10, 11, 12});
  REQUIRE(out.max_top == 2);
  CHECK(out.top_ids[2] == 11);
  CHECK(out.logprobs.size() == 3);
  launch(30, plain, 1);
  sampler.collect(out);
  CHECK(out.tokens == std::vector<std::int32_t>{20, 21, 22, 23});
  CHECK(out.max_top == 0);
  sampler.collect(out);
  CHECK(out.tokens == std::vector<std::int32_t>{30});
}

TEST_CASE("every parameter of a row has its say in what is drawn", "[actors]") {
  constexpr std::int32_t vocab = 8, rows = 64;
  // Only the portable ops skip the parts that no row needs, as the sampler reports.
  const gpu::detail::op_backends* const ops =
      GENERATE(false, true) ? test::portable_ops() : nullptr;
  if (ops != nullptr && !test::tests_host()) return;
  CAPTURE(ops != nullptr);
  auto dev = gpu::device::open({.kind = "host", .threads = 1, .ops = ops}).value();
  auto made = device_sampler::create(*dev, rows, 2, vocab);
  REQUIRE(made.ok());
  const auto logits = dev->allocate(sizeof(float) * vocab * rows, "logits").value();
  const auto draw = [&](std::vector<draw_spec> draws) {
    std::vector<float> values;
    for (std::size_t r = 0; r < draws.size(); ++r)
      for (const float v : {5.0f, 4.5f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f})
        values.push_back(v);
    dev->upload(logits.data(), values.data(), values.size() * sizeof(float));
    step_samples out;
    const auto n = static_cast<std::int64_t>(draws.size());
    REQUIRE(
        made.value()
            .draw(*dev, gpu::view_2d(logits.data(), gpu::dtype::f32, n, vocab, vocab), draws, out)
            .ok());
    return out;
  };

  const std::vector<gpu::token_count> seen{{0, 2, 0}};
  const std::vector<gpu::token_bias> liked{{3, 9.0f}};
  const std::vector<std::uint32_t> allowed{0b10000};
  config::sampling_params greedy, repeated, present, frequent, received;
  for (auto* p : {&greedy, &repeated, &present, &frequent, &received})
    p->temperature = 0;
  repeated.repetition_penalty = 2;   // divides the logit 5: 2.5 is left
  present.presence_penalty = 0.9f;   // 4.1 is left
  frequent.frequency_penalty = 0.3f; // token 0 was drawn twice: 4.4 is left
  received.logprobs = 1;
  const auto best = draw({{.params = &greedy, .counts = seen},
                          {.params = &repeated, .counts = seen},
                          {.params = &present, .counts = seen},
                          {.params = &frequent, .counts = seen},
                          {.params = &greedy, .biases = liked},
                          {.params = &greedy, .mask = allowed},
                          {.params = &received}});
  CHECK(best.tokens == std::vector<std::int32_t>{0, 1, 1, 1, 3, 4, 0});
  CHECK(best.top_ids[12] == 0);
  CHECK(best.logprobs[6] == Approx(-std::log(1 + std::exp(-0.5) + 6 * std::exp(-5.0))));

  config::sampling_params hot, first, nucleus, likely;
  for (auto* p : {&hot, &first, &nucleus, &likely})
    p->temperature = 100;
  first.top_k = 1;
  nucleus.top_p = 0.01f;
  likely.min_p = 1;
  const auto drawn = [&](const config::sampling_params& p, bool by_seed) {
    std::vector<draw_spec> draws(rows, {.params = &p});
    for (std::size_t i = 0; i < draws.size(); ++i)
      (by_seed ? draws[i].seed : draws[i].counter) = i;
    auto tokens = draw(draws).tokens;
    std::sort(tokens.begin(), tokens.end());
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    return tokens.size();
  };
  for (const bool by_seed : {true, false}) {
    CHECK(drawn(hot, by_seed) > 3); // of eight tokens that are almost equally likely
    CHECK(drawn(first, by_seed) == 1);
    CHECK(drawn(nucleus, by_seed) == 1);
    CHECK(drawn(likely, by_seed) == 1);
  }

  // Rows of one step with different parameters are each drawn as in a step of equal rows.
  config::sampling_params two;
  two.temperature = 100;
  two.top_k = 2;
  const config::sampling_params* const kinds[] = {&greedy, &two, &nucleus};
  std::vector<draw_spec> mixed(rows);
  for (std::size_t i = 0; i < mixed.size(); ++i) {
    mixed[i].params = kinds[i % 3];
    mixed[i].seed = i;
  }
  const auto tokens = draw(mixed).tokens;
  bool of_two[2] = {};
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    CAPTURE(i, tokens[i]);
    REQUIRE(tokens[i] < (i % 3 == 1 ? 2 : 1));
    if (i % 3 == 1) of_two[tokens[i]] = true;
  }
  CHECK(of_two[0]);
  CHECK(of_two[1]);
}
