// The logic of one request without actors: what is refused, what a client is told, and when.
#include "actors/session/session_core.hpp"

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/actors/scripted_runner.hpp"
#include "tests/catch.hpp"

using namespace twill::actors;

namespace {

const auto now = steady_clock::time_point{} + std::chrono::seconds(5);

struct rig final : session_core::session_host {
  explicit rig(request asked, event_callback callback = nullptr)
      : control(std::make_shared<request_control>()),
        core(args_of(std::move(asked), std::move(callback)), stats, *this) {}

  session_args args_of(request asked, event_callback callback) {
    session_args args;
    args.id = 3;
    args.request = std::move(asked);
    args.on_event = callback ? std::move(callback) : [this](event e) { events.push_back(e); };
    args.control = control;
    args.submitted = now - std::chrono::seconds(1);
    return args;
  }
  void start(std::int32_t context = 100, std::int64_t kv_tokens = 100) {
    auto files = std::make_shared<twill::models::model>();
    files->text = std::make_shared<scripted::byte_tokenizer>();
    auto served = std::make_shared<served_model>();
    served->files = files;
    served->id = "bytes";
    served->max_context_tokens = context;
    served->kv_tokens = kv_tokens;
    served->max_prompt_bytes = 1000;
    core.start(served, std::nullopt);
    if (!submitted.empty()) core.queued();
  }
  /// The batcher tells tokens of a choice, one by one.
  void tokens(const std::string& text, std::int32_t choice = 0) {
    for (char c : text)
      core.token(token_of(c, choice), now);
  }
  static token_ready token_of(std::int32_t id, std::int32_t choice = 0) {
    token_ready ready;
    ready.token = id;
    ready.choice = choice;
    return ready;
  }
  std::string text() const {
    std::string all;
    for (const event& e : events)
      all += e.text;
    return all;
  }

  void submit(const submit_prompt& prompt) override { submitted.push_back(prompt); }
  void finish_choice(std::int32_t choice) override { finished.push_back(choice); }
  void release() override { ++n_released; }
  void over() override { ++n_over; }

  stats_board stats;
  std::shared_ptr<request_control> control;
  std::vector<event> events;
  std::vector<submit_prompt> submitted;
  std::vector<std::int32_t> finished;
  int n_released = 0, n_over = 0;
  session_core core;
};

request asking(const std::string& prompt, std::int32_t max_tokens = 10) {
  request r;
  r.prompt = text_prompt{prompt};
  r.sampling.max_tokens = max_tokens;
  r.sampling.seed = 77;
  return r;
}

/// The one error event of a request that was refused before it reached the batcher.
request_error refusal(request asked, std::int32_t context = 100, std::int64_t kv_tokens = 100) {
  rig r(std::move(asked));
  r.start(context, kv_tokens);
  CHECK(r.submitted.empty());
  CHECK(r.n_released == 0);
  CHECK(r.n_over == 1);
  REQUIRE(r.events.size() == 1);
  CHECK(r.events[0].last);
  REQUIRE(r.events[0].error);
  return *r.events[0].error;
}

} // namespace

TEST_CASE("a request is tokenized and submitted with its limits, seed and stop ids") {
  request asked = asking("hello", 8);
  asked.sampling.stop_token_ids = {5, 7, 5};
  asked.sampling.n = 2;
  asked.echo_prompt_ids = true;
  rig r(asked);
  r.start();
  REQUIRE(r.submitted.size() == 1);
  const submit_prompt& prompt = r.submitted[0];
  CHECK(prompt.request == 3);
  CHECK(prompt.n_choices == 2);
  CHECK(*prompt.spec.prompt == std::vector<std::int32_t>{'h', 'e', 'l', 'l', 'o'});
  CHECK(*prompt.spec.stop_ids == std::vector<std::int32_t>{5, 7, scripted::eos});
  CHECK(prompt.spec.seed == 77);
  CHECK(prompt.spec.max_new == 8);
  REQUIRE(r.events.size() == 1);
  CHECK(r.events[0].started);
  CHECK(r.events[0].prompt_ids == *prompt.spec.prompt);
  CHECK(r.events[0].use.prompt_tokens == 5);
}

TEST_CASE("without max_tokens a request may fill the context, as far as the cache holds it") {
  rig wide(asking("hello", -1));
  wide.start(100, 1000);
  CHECK(wide.submitted.at(0).spec.max_new == 95);
  rig narrow(asking("hello", -1));
  narrow.start(100, 40);
  CHECK(narrow.submitted.at(0).spec.max_new == 36); // the last token needs no place in the cache
}

TEST_CASE("what cannot be served is refused before the batcher hears of it") {
  request other = asking("hello");
  other.model = "another";
  CHECK(refusal(other).code == errc::unknown_model);
  CHECK(refusal(asking("")).code == errc::empty_prompt);
  CHECK(refusal(asking(std::string(100, 'x'))).code == errc::context_too_long);
  CHECK(refusal(asking(std::string(1001, 'x'))).code == errc::context_too_long);
  CHECK(refusal(asking("hello", 96)).param == "max_tokens");
  CHECK(refusal(asking("hello", 50), 100, 40).code == errc::too_large);
  request chat = asking("");
  chat.prompt = chat_prompt{};
  CHECK(refusal(chat).code == errc::no_chat_template);
  request hot = asking("hello");
  hot.sampling.temperature = -1;
  CHECK(refusal(hot).code == errc::invalid_argument);
}

TEST_CASE("an answer at admission is passed on, and no model is needed for it") {
  rig r(asking("hello"));
  r.core.start(nullptr, request_error{errc::shutting_down, "the server is shutting down", ""});
  REQUIRE(r.events.size() == 1);
  CHECK(r.events[0].error->code == errc::shutting_down);
  CHECK(r.n_over == 1);
  CHECK(r.stats.read().finished_error == 1);
}

TEST_CASE("a request ends by length with its text and usage") {
  rig r(asking("hello", 3));
  r.start();
  r.tokens("ab");
  token_ready last = rig::token_of('c');
  last.length = true;
  r.core.token(last, now);
  CHECK(r.text() == "abc");
  const event& end = r.events.back();
  CHECK(end.finish == finish_reason::length);
  CHECK(end.last);
  CHECK(end.use.completion_tokens == 3);
  CHECK(r.finished.empty()); // the batcher knows of ends by length
  CHECK(r.n_released == 0);
  CHECK(r.n_over == 1);
  CHECK(r.stats.read().finished_length == 1);
}

TEST_CASE("a stop string is held back, cut off, and told to the batcher once") {
  request asked = asking("hello");
  asked.sampling.stop = {"STOP"};
  rig r(asked);
  r.start();
  r.tokens("abST");
  CHECK(r.text() == "ab");
  r.tokens("x");
  CHECK(r.text() == "abSTx");
  r.tokens("STOP");
  CHECK(r.text() == "abSTx");
  CHECK(r.events.back().finish == finish_reason::stop);
  CHECK(r.events.back().stop_string == "STOP");
  CHECK(r.finished == std::vector<std::int32_t>{0});
  const std::size_t n = r.events.size();
  r.tokens("yz"); // drawn by steps prepared before
  CHECK(r.events.size() == n);
  CHECK(r.n_over == 1);
}

TEST_CASE("an end id ends a choice and its own text is not shown") {
  rig r(asking("hello"));
  r.start();
  token_ready end = rig::token_of(scripted::eos);
  end.stopped = true;
  r.tokens("ab");
  r.core.token(end, now);
  CHECK(r.text() == "ab");
  CHECK(r.events.back().stop_token == scripted::eos);
  CHECK(r.finished.empty());
  CHECK(r.stats.read().finished_stop == 1);
}

TEST_CASE("a request is over when its last choice is") {
  request asked = asking("hello");
  asked.sampling.n = 2;
  rig r(asked);
  r.start();
  token_ready end = rig::token_of('z', 1);
  end.length = true;
  r.core.token(end, now);
  CHECK_FALSE(r.events.back().last);
  CHECK(r.events.back().choice == 1);
  CHECK(r.n_over == 0);
  end.choice = 0;
  r.core.token(end, now);
  CHECK(r.events.back().last);
  CHECK(r.events.back().use.completion_tokens == 2);
  CHECK(r.n_over == 1);
}

TEST_CASE("a cancelled request says nothing more and gives back what it holds") {
  rig r(asking("hello"));
  r.start();
  r.tokens("a");
  const std::size_t n = r.events.size();
  r.control->silenced = true;
  r.core.cancel();
  r.tokens("b");
  r.core.failed({errc::executor_failed, "late", ""});
  CHECK(r.events.size() == n);
  CHECK(r.n_released == 1);
  CHECK(r.n_over == 1);
  CHECK(r.stats.read().finished_abort == 1);
}

TEST_CASE("a deadline ends a request with what it had") {
  rig r(asking("hello"));
  r.start();
  r.tokens("ab");
  r.core.expire();
  CHECK(r.events.back().error->code == errc::timed_out);
  CHECK(r.events.back().error->message.find("2 output tokens") != std::string::npos);
  CHECK(r.events.back().last);
  CHECK(r.n_released == 1);
}

TEST_CASE("a request that the batcher lost is not released there again") {
  rig r(asking("hello"));
  r.start();
  r.core.failed({errc::queue_full, "the queue is full (7 waiting); retry later", ""});
  CHECK(r.events.back().error->code == errc::queue_full);
  CHECK(r.n_released == 0);
  CHECK(r.n_over == 1);
}

TEST_CASE("a callback that throws ends its own request only") {
  int calls = 0;
  rig r(asking("hello"), [&calls](event) {
    if (++calls == 2) throw std::runtime_error("broken reader");
  });
  r.start();
  r.tokens("a");
  CHECK(calls == 2);
  CHECK(r.n_released == 1);
  CHECK(r.n_over == 1);
  r.tokens("b");
  CHECK(calls == 2);
}

TEST_CASE("log-probabilities come with the bytes of their tokens") {
  rig r(asking("hello"));
  r.start();
  token_ready ready = rig::token_of('a');
  ready.logprob = -0.5f;
  ready.top = {{'a', -0.5f}, {'b', -1.5f}};
  r.core.token(ready, now);
  const token_output& out = r.events.back().tokens.at(0);
  CHECK(out.chosen.id == 'a');
  CHECK(out.chosen.bytes == "a");
  REQUIRE(out.top.size() == 2);
  CHECK(out.top[1].bytes == "b");
}
