// All actors of an engine together, called through engine_port, with a scripted runner in place of
// a model: streaming, stops, choices, cancel, pause, time-outs, refusals.
#include <string>
#include <vector>

#include "tests/actors/engine_fixture.hpp"
#include "tests/catch.hpp"

using namespace scripted;
using actors::errc;
using actors::finish_reason;

TEST_CASE("a request streams its tokens and ends once", "[actors]") {
  fixture b;
  REQUIRE(b.ready());
  recorder r;
  auto asked = text_request("Hello world", 40);
  asked.echo_prompt_ids = true;
  b.port.submit(asked, r.callback());
  REQUIRE(r.wait_over());
  CHECK(r.broken() == "");
  const auto expected = solo("Hello world", 40);
  CHECK(r.text() == expected.text);
  CHECK(r.prompt_ids().size() == 11);
  CHECK(r.use().prompt_tokens == 11);
  CHECK(r.use().completion_tokens == expected.n_tokens);
  REQUIRE(r.result().finish);
  CHECK(*r.result().finish == (expected.stopped ? finish_reason::stop : finish_reason::length));
  CHECK(r.result().stop_token == (expected.stopped ? eos : -1));
  CHECK(b.no_blocks_used());
  const auto stats = b.port.stats();
  CHECK(stats.generation_tokens == static_cast<std::uint64_t>(expected.n_tokens));
  CHECK(stats.prompt_tokens == 11);
  CHECK(stats.requests_running == 0);
  CHECK(stats.requests_waiting == 0);
}

TEST_CASE("requests of all lengths in a pool that is too small have their solo texts", "[actors]") {
  config::options options;
  options.scheduler.max_step_tokens = 24;
  options.scheduler.max_running = 8;
  auto plan = std::make_shared<script>();
  plan->n_blocks = 40;  // 160 positions; two long requests fill it
  plan->delay_us = 200; // so that the allocator answers before a step ends
  plan->max_context = 160;
  fixture b(options, plan);
  REQUIRE(b.ready());
  std::vector<recorder> all(48);
  auto length = [](int i) { return 1 + (i * 13) % 70; };
  auto tokens = [](int i) { return 1 + (i * 29) % 80; };
  for (int i = 0; i < 48; ++i) {
    auto asked = text_request(prompt_of(i, length(i)), tokens(i), i % 2 == 0 ? 0.0f : 1.0f);
    asked.sampling.seed = 1000u + static_cast<unsigned>(i);
    asked.sampling.ignore_eos = i % 3 == 0;
    b.port.submit(asked, all[static_cast<std::size_t>(i)].callback());
  }
  for (int i = 0; i < 48; ++i) {
    recorder& r = all[static_cast<std::size_t>(i)];
    REQUIRE(r.wait_over());
    CHECK(r.broken() == "");
    CHECK_FALSE(r.error());
    const auto expected = solo(prompt_of(i, length(i)), tokens(i), i % 2 == 0 ? 0.0f : 1.0f,
                               1000u + static_cast<unsigned>(i), 0, i % 3 == 0);
    CHECK(r.text() == expected.text);
    CHECK(r.use().completion_tokens == expected.n_tokens);
  }
  CHECK(b.no_blocks_used());
  CHECK(b.port.stats().preemptions > 0);
  CHECK(plan->widest > 3);
}

TEST_CASE("a stop string ends the text before it, or after it when asked", "[actors]") {
  fixture b;
  REQUIRE(b.ready());
  const std::string whole = solo("stop here", 60, 0, 0, 0, true).text;
  REQUIRE(whole.size() > 20);
  const std::string stop = whole.substr(9, 4);
  const auto at = whole.find(stop);
  for (bool include : {false, true}) {
    recorder r;
    auto asked = text_request("stop here", 60);
    asked.sampling.ignore_eos = true;
    asked.sampling.stop = {"#none#", stop};
    asked.sampling.include_stop_str_in_output = include;
    b.port.submit(asked, r.callback());
    REQUIRE(r.wait_over());
    CHECK(r.broken() == "");
    CHECK(r.text() == whole.substr(0, at + (include ? stop.size() : 0)));
    CHECK(r.result().stop_string == stop);
    CHECK(*r.result().finish == finish_reason::stop);
  }
  CHECK(b.no_blocks_used());
}

TEST_CASE("min_tokens, ignore_eos and stop ids", "[actors]") {
  fixture b;
  REQUIRE(b.ready());
  std::string prompt; // a prompt whose output ends early
  for (int i = 0; prompt.empty() && i < 500; ++i)
    if (const auto s = solo(prompt_of(i, 5), 100); s.stopped && s.n_tokens > 3 && s.n_tokens < 12)
      prompt = prompt_of(i, 5);
  REQUIRE_FALSE(prompt.empty());
  {
    recorder r;
    auto asked = text_request(prompt, 50);
    asked.sampling.min_tokens = 20;
    b.port.submit(asked, r.callback());
    REQUIRE(r.wait_over());
    CHECK(r.text() == solo(prompt, 50, 0, 0, 20).text);
    CHECK(r.use().completion_tokens > 20);
  }
  {
    recorder r;
    auto asked = text_request(prompt, 50);
    const std::string whole = solo(prompt, 50).text;
    asked.sampling.stop_token_ids = {whole[2]};
    b.port.submit(asked, r.callback());
    REQUIRE(r.wait_over());
    CHECK(r.text() == whole.substr(0, whole.find(whole[2])));
    CHECK(r.result().stop_token == whole[2]);
  }
}

TEST_CASE("choices are drawn with consecutive seeds and share their prompt's blocks", "[actors]") {
  auto plan = std::make_shared<script>();
  plan->hold();
  fixture b({}, plan);
  REQUIRE(b.ready());
  recorder r;
  const std::string prompt = prompt_of(3, 41); // 10 full blocks of 4 to share
  auto asked = text_request(prompt, 12, 1.0f);
  asked.sampling.n = 4;
  asked.sampling.seed = 77;
  asked.sampling.ignore_eos = true;
  b.port.submit(asked, r.callback());
  plan->allow(2);
  REQUIRE(r.wait_tokens(2));
  REQUIRE(plan->step_waits());
  CHECK(b.port.stats().kv_blocks_used <= 11 + 3 * 3);
  plan->open();
  REQUIRE(r.wait_over());
  CHECK(r.broken() == "");
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(r.text(i) == solo(prompt, 12, 1.0f, 77 + i, 0, true).text);
  CHECK(r.use().completion_tokens == 48);
  CHECK(b.no_blocks_used());
}

TEST_CASE("choices compute no token of their prompt but the last one", "[actors]") {
  fixture b;
  REQUIRE(b.ready());
  recorder r;
  const std::string prompt =
      prompt_of(3, 44); // 10 full blocks of 4, and a block of which 3 are known
  auto asked = text_request(prompt, 12, 1.0f);
  asked.sampling.n = 4;
  asked.sampling.seed = 77;
  asked.sampling.ignore_eos = true;
  b.port.submit(asked, r.callback());
  REQUIRE(r.wait_over());
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(r.text(i) == solo(prompt, 12, 1.0f, 77 + i, 0, true).text);
  CHECK(b.plan->computed == 44 + 3 * 1 + 4 * 11);
  CHECK(b.no_blocks_used());
}

TEST_CASE("a cancelled request's blocks are free within one step", "[actors]") {
  config::options options;
  options.scheduler.max_step_tokens = 16;
  options.scheduler.max_running = 1;
  auto plan = std::make_shared<script>();
  plan->hold();
  fixture b(options, plan);
  REQUIRE(b.ready());
  auto asked = text_request(prompt_of(1, 60), 100);
  asked.sampling.ignore_eos = true;

  SECTION("in prefill") {
    recorder r;
    const auto id = b.port.submit(asked, r.callback());
    REQUIRE(plan->step_waits());
    REQUIRE(eventually([&] { return b.port.stats().kv_blocks_used > 0; }));
    if (plan->ahead) REQUIRE(eventually([&] { return plan->computed == 32; }));
    b.port.cancel(id);
    const auto events = r.n_events();
    REQUIRE(eventually([&] { return b.port.stats().requests_running == 0; }));
    plan->allow(2);
    CHECK(b.no_blocks_used());
    // The step that was running is computed to its end, but the next step, which was already sent,
    // is not computed. With plan->ahead, however, the device has begun both steps, so both are
    // computed.
    CHECK(plan->computed == (plan->ahead ? 32 : 16));
    CHECK(r.n_events() <= events + 1);
    CHECK_FALSE(r.over());
  }
  SECTION("in decode") {
    recorder r;
    const auto id = b.port.submit(asked, r.callback());
    plan->allow(10);
    REQUIRE(r.wait_tokens(3));
    REQUIRE(plan->step_waits());
    const std::int64_t computed = plan->computed;
    b.port.cancel(id);
    REQUIRE(eventually([&] { return b.port.stats().requests_running == 0; }));
    plan->allow(2);
    CHECK(b.no_blocks_used());
    CHECK(plan->computed <= computed + (plan->ahead ? 2 : 1));
    CHECK_FALSE(r.over());
  }
  SECTION("in the queue") {
    recorder first, second;
    const auto one = b.port.submit(asked, first.callback());
    REQUIRE(eventually([&] { return b.port.stats().requests_running == 1; }));
    const auto two = b.port.submit(asked, second.callback());
    REQUIRE(eventually([&] { return b.port.stats().requests_waiting == 1; }));
    b.port.cancel(two);
    REQUIRE(eventually([&] { return b.port.stats().requests_waiting == 0; }));
    b.port.cancel(one);
    REQUIRE(eventually([&] { return b.port.stats().requests_running == 0; }));
    plan->allow(2);
    CHECK(b.no_blocks_used());
  }
  REQUIRE(eventually([&] { return b.port.stats().finished_abort >= 1; }));
  plan->open();
  recorder after; // the next request is served
  b.port.submit(text_request("next", 8), after.callback());
  REQUIRE(after.wait_over());
  CHECK(after.text() == solo("next", 8).text);
  CHECK(b.port.stats().executor_restarts == 0);
}

TEST_CASE("a paused request stands still and goes on where it was", "[actors]") {
  auto plan = std::make_shared<script>();
  plan->delay_us = 500;
  fixture b({}, plan);
  REQUIRE(b.ready());
  recorder r, other, more;
  auto asked = text_request("pause me", 150);
  asked.sampling.ignore_eos = true;
  const auto id = b.port.submit(asked, r.callback());
  REQUIRE(r.wait_tokens(5));
  b.port.pause(id);
  b.port.pause(id);
  asked.prompt = actors::text_prompt{"another"};
  b.port.submit(asked, other.callback()); // 150 steps: before the last one the pause takes effect
  REQUIRE(other.wait_over());
  const auto paused_at = r.n_tokens();
  CHECK(paused_at < 150);
  b.port.submit(asked, more.callback());
  REQUIRE(more.wait_over());
  CHECK(r.n_tokens() == paused_at);
  b.port.resume(id);
  REQUIRE(r.wait_over());
  CHECK(r.text() == solo("pause me", 150, 0, 0, 0, true).text);
}

TEST_CASE("a request that is paused while its text is encoded stands still", "[actors]") {
  auto plan = std::make_shared<script>();
  plan->delay_us = 500;
  plan->max_context = 8000;
  plan->n_blocks = 4000;
  fixture b({}, plan);
  REQUIRE(b.ready());
  recorder r, other;
  auto asked = text_request(std::string(3000, 'x'), 150); // long enough for a thread of its own
  asked.sampling.ignore_eos = true;
  const auto id = b.port.submit(asked, r.callback());
  b.port.pause(id);
  b.port.submit(asked, other.callback());
  REQUIRE(other.wait_over());
  CHECK(r.n_tokens() < 100);
  b.port.resume(id);
  REQUIRE(r.wait_over());
  CHECK(r.text() == other.text());
}

TEST_CASE("a paused request does not keep others from running", "[actors]") {
  config::options options;
  options.scheduler.max_running = 1;
  auto plan = std::make_shared<script>();
  plan->delay_us = 500;
  fixture b(options, plan);
  REQUIRE(b.ready());
  recorder slow, other;
  auto asked = text_request("slow reader", 120);
  asked.sampling.ignore_eos = true;
  const auto id = b.port.submit(asked, slow.callback());
  REQUIRE(slow.wait_tokens(3));
  b.port.pause(id);
  b.port.submit(text_request("other", 10), other.callback());
  REQUIRE(other.wait_over());
  CHECK(other.text() == solo("other", 10).text);
  b.port.resume(id);
  REQUIRE(slow.wait_over());
  CHECK(slow.text() == solo("slow reader", 120, 0, 0, 0, true).text);
}

TEST_CASE("a request past its deadline ends with timed_out", "[actors]") {
  auto plan = std::make_shared<script>();
  plan->delay_us = 5000;
  fixture b({}, plan);
  REQUIRE(b.ready());
  recorder r;
  auto asked = text_request("too slow", 150);
  asked.sampling.ignore_eos = true;
  asked.timeout = 150ms;
  b.port.submit(asked, r.callback());
  REQUIRE(r.wait_over());
  REQUIRE(r.error());
  CHECK(r.error()->code == errc::timed_out);
  CHECK(r.n_tokens() < 150);
  CHECK(r.broken() == "");
  CHECK(b.no_blocks_used());
  CHECK(b.port.stats().finished_error == 1);
}

TEST_CASE("a full queue refuses, and serves again later", "[actors]") {
  config::options options;
  options.scheduler.max_running = 1;
  options.scheduler.max_queued = 2;
  auto plan = std::make_shared<script>();
  plan->hold();
  fixture b(options, plan);
  REQUIRE(b.ready());
  std::vector<recorder> all(4);
  for (int i = 0; i < 4; ++i) {
    b.port.submit(text_request("queue", 5), all[static_cast<std::size_t>(i)].callback());
    if (i == 0) REQUIRE(plan->step_waits());
  }
  REQUIRE(all[3].wait_over());
  REQUIRE(all[3].error());
  CHECK(all[3].error()->code == errc::queue_full);
  plan->open();
  for (int i = 0; i < 3; ++i) {
    REQUIRE(all[static_cast<std::size_t>(i)].wait_over());
    CHECK_FALSE(all[static_cast<std::size_t>(i)].error());
  }
  recorder again;
  b.port.submit(text_request("queue", 5), again.callback());
  REQUIRE(again.wait_over());
  CHECK_FALSE(again.error());
}

TEST_CASE("what cannot be served is refused with field, rule and value", "[actors]") {
  auto plan = std::make_shared<script>();
  plan->n_blocks = 10; // 40 positions
  plan->max_context = 100;
  fixture b({}, plan);
  REQUIRE(b.ready());
  auto refusal = [&](const actors::request& asked) {
    recorder r;
    b.port.submit(asked, r.callback());
    REQUIRE(r.wait_over());
    REQUIRE(r.error());
    CHECK(r.n_events() == 1);
    return *r.error();
  };
  auto asked = text_request("hello", 5);
  asked.model = "another";
  CHECK(refusal(asked).code == errc::unknown_model);
  CHECK(refusal(text_request("", 5)).code == errc::empty_prompt);
  CHECK(refusal(text_request(prompt_of(1, 100), 1)).code == errc::context_too_long);
  // The longest token has five bytes.
  CHECK(refusal(text_request(std::string(501, 'x'), 1)).message.find("got 501 bytes") !=
        std::string::npos);
  CHECK(refusal(text_request(std::string(500, 'x'), 1)).message.find("bytes") == std::string::npos);
  const auto long_output = refusal(text_request("hello", 96));
  CHECK(long_output.code == errc::context_too_long);
  CHECK(long_output.param == "max_tokens");
  CHECK(long_output.message.find("got 96") != std::string::npos);
  CHECK(refusal(text_request("hello", 60)).code == errc::too_large);
  asked = text_request("hello", 5);
  asked.sampling.temperature = -1;
  const auto temperature = refusal(asked);
  CHECK(temperature.code == errc::invalid_argument);
  CHECK(temperature.param == "temperature");
  asked = text_request("hello", 5);
  asked.prompt = actors::token_prompt{1, 2, 257};
  CHECK(refusal(asked).message.find("prompt[2]") != std::string::npos);
  asked.prompt = actors::chat_prompt{};
  CHECK(refusal(asked).code == errc::no_chat_template);
  recorder fits; // 5 prompt tokens and 36 drawn ones fill the pool exactly
  auto most = text_request("hello", 36);
  most.sampling.ignore_eos = true;
  b.port.submit(most, fits.callback());
  REQUIRE(fits.wait_over());
  CHECK(fits.text() == solo("hello", 36, 0, 0, 0, true).text);
}

TEST_CASE("a model has the names of its files, unless one is configured", "[actors]") {
  for (const std::string name : {"", "mine"}) {
    config::options options;
    options.model.name = name;
    fixture b(options);
    REQUIRE(b.ready());
    const auto model = b.port.models().front();
    CHECK(model.id == (name.empty() ? "scripted" : name));
    CHECK(model.answers_to("script") == name.empty());
  }
}

TEST_CASE("the port's tokenizer calls answer on the caller's thread", "[actors]") {
  fixture b;
  REQUIRE(b.ready());
  CHECK(b.port.models().size() == 1);
  CHECK(b.port.models()[0].id == "scripted");
  CHECK(b.port.tokenize("", {"ab"}, false).value() == std::vector<std::int32_t>{'a', 'b'});
  CHECK(b.port.tokenize("x", {"ab"}, false).code() == errc::unknown_model);
  CHECK(b.port.detokenize("scripted", {'h', 'i'}).value() == "hi");
  CHECK(b.port.detokenize("", {'h', eos}).value() == "h<eos>");
  CHECK(b.port.detokenize("", {-1}).code() == errc::invalid_argument);
  CHECK(b.port.pieces("", {'h'}).value()[0].bytes == "h");
}
