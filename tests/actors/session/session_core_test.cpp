// session_core, the logic of one request without actors: which requests are refused, which events a
// client gets, and when.
#include "actors/session/session_core.hpp"

#include "actors/session/request_log.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/actors/session/session_fixture.hpp"
#include "tests/catch.hpp"
#include "tests/models/text/grammar/byte_vocabulary.hpp"

using namespace session_tests;

namespace {

/// The error that ends a request which is refused before it reaches the batcher.
request_error refusal(request asked, std::int32_t context = 100, std::int64_t kv_tokens = 100) {
  fixture r(std::move(asked));
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
  fixture r(asked);
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

TEST_CASE("what a tenant may have of the scheduler goes with the prompt") {
  auto asked = asking("hi");
  asked.priority = -4;
  fixture r(asked);
  r.start();
  REQUIRE(r.submitted.size() == 1);
  CHECK(r.submitted[0].priority == -4);
  CHECK(r.submitted[0].limits.weight == 3);
  CHECK(r.submitted[0].limits.max_running == 2);
  CHECK(r.submitted[0].limits.max_queued == 5);
  CHECK(r.submitted[0].spec.cache_scope == 5);
}

TEST_CASE("a tenant's tokens are counted, and those it did not use given back") {
  token_budget budget(100);
  const auto left = [&] {
    std::int64_t n = 0;
    while (n < 100 && !budget.check(n + 1, now))
      ++n;
    return n;
  };
  {
    fixture r(asking("12345", 50), nullptr, &budget);
    r.start();
    CHECK(left() <= 46); // time gives some back
    r.tokens("abc");
    CHECK(left() <= 46);
    r.core.cancel();
    CHECK(left() >= 90);
  }
  // A request that was cancelled is charged for its prompt; a request that failed before its first
  // token is charged nothing.
  constexpr int not_charged = 100; // so many tokens fill the bucket again
  budget.settle(not_charged, 0);
  {
    fixture r(asking("12345", 50), nullptr, &budget);
    r.start();
    r.core.failed({errc::executor_failed, "lost", ""});
    CHECK(left() == 100);
  }
  fixture large(asking("12345", 90), nullptr, &budget);
  large.start();
  fixture refused(asking("12345", 10), nullptr, &budget);
  refused.start();
  REQUIRE(refused.events.size() == 1);
  REQUIRE(refused.events[0].error);
  CHECK(refused.events[0].error->code == errc::rate_limited);
  CHECK(refused.events[0].error->retry_after_s >= 5);
  CHECK(refused.events[0].error->retry_after_s <= 6);
  CHECK(refused.events[0].error->message.find("tenants.tokens_per_minute") != std::string::npos);
  CHECK(refused.submitted.empty());
  large.core.cancel();
  CHECK(left() >= 95);
  CHECK(budget.charged() == -not_charged);
}

TEST_CASE("a tenant pays for every choice, and for what comes beyond the expected") {
  token_budget budget(100'000);
  const auto used = [&] { // in thousands, because time refills the budget a little
    std::int64_t low = 0, high = 100'000;
    while (low < high) {
      const auto middle = (low + high + 1) / 2;
      if (budget.check(middle, steady_clock::time_point{}))
        high = middle - 1;
      else
        low = middle;
    }
    return (100'000 - low + 100) / 1000;
  };
  request three = asking("hi", 4000);
  three.sampling.n = 3;
  fixture choices(three, nullptr, &budget);
  choices.start(10'000, 10'000);
  CHECK(used() == 12);
  choices.core.cancel();
  CHECK(used() == 0);
  fixture open(asking("hi", -1), nullptr, &budget);
  open.start(10'000, 10'000);
  CHECK(used() == 0); // 258 tokens are expected, which is 0 thousands
  open.tokens(std::string(5000, 'a'));
  CHECK(used() == 5);
  open.core.failed({errc::executor_failed, "lost", ""});
  CHECK(used() == 5); // streamed tokens stay charged
}

TEST_CASE("a request that waits too long is the batcher's to end, unless that has not got it") {
  fixture r(asking("hi"));
  r.start();
  r.core.waited_too_long();
  CHECK(r.n_waited == 1);
  CHECK(r.n_over == 0);
  r.core.failed(waited_too_long::error());
  REQUIRE(r.events.back().error);
  CHECK(r.events.back().error->code == errc::queue_timed_out);
  CHECK(r.events.back().error->retry_after_s == 7);
  fixture early(asking("hi"));
  early.core.waited_too_long();
  REQUIRE(early.events.size() == 1);
  CHECK(early.events[0].error->code == errc::queue_timed_out);
}

TEST_CASE("without max_tokens a request may fill the context, as far as the cache holds it") {
  fixture wide(asking("hello", -1));
  wide.start(100, 1000);
  CHECK(wide.submitted.at(0).spec.max_new == 95);
  fixture narrow(asking("hello", -1));
  narrow.start(100, 40);
  CHECK(narrow.submitted.at(0).spec.max_new == 36); // the last token needs no place in the cache
}

TEST_CASE("a prompt and its output may fill the context, and the cache, to the last token") {
  fixture context(asking("hello", 95));
  context.start(100, 1000);
  CHECK(context.submitted.at(0).spec.max_new == 95);
  fixture cache(asking("hello", 36));
  cache.start(100, 40);
  CHECK(cache.submitted.at(0).spec.max_new == 36);
  CHECK(refusal(asking("hello", 37), 100, 40).code == errc::too_large);
}

TEST_CASE("max_tokens that is a bound alone is shortened to what fits beside the prompt") {
  const auto max_new = [](std::int32_t max_tokens, std::int64_t kv_tokens) {
    request asked = asking("hello", max_tokens);
    asked.shorten_output = true;
    fixture r(asked);
    r.start(100, kv_tokens);
    return r.submitted.at(0).spec.max_new;
  };
  CHECK(max_new(1, 1000) == 1);
  CHECK(max_new(95, 1000) == 95);
  CHECK(max_new(96, 1000) == 95);
  CHECK(max_new(2147483647, 1000) == 95);
  CHECK(max_new(37, 40) == 36);
  request full = asking(std::string(100, 'x'), 10);
  full.shorten_output = true;
  CHECK(refusal(full).code == errc::context_too_long);
  CHECK(refusal(full, 1000, 40).code == errc::too_large);
}

TEST_CASE("what cannot be served is refused before it reaches the batcher") {
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
  fixture r(asking("hello"));
  r.core.start(nullptr, request_error{errc::shutting_down, "the server is shutting down", ""});
  REQUIRE(r.events.size() == 1);
  CHECK(r.events[0].error->code == errc::shutting_down);
  CHECK(r.n_over == 1);
  CHECK(r.stats.read().finished_error == 1);
}

TEST_CASE("a request ends by length with its text and usage") {
  fixture r(asking("hello", 3));
  r.start();
  r.tokens("ab");
  token_ready last = fixture::token_of('c');
  last.length = true;
  r.core.token(last, now);
  CHECK(r.text() == "abc");
  const event& end = r.events.back();
  CHECK(end.finish == finish_reason::length);
  CHECK(end.last);
  CHECK(end.use.completion_tokens == 3);
  CHECK(r.finished.empty()); // the batcher ends by length itself
  CHECK(r.n_released == 0);
  CHECK(r.n_over == 1);
  CHECK(r.stats.read().finished_length == 1);
}

TEST_CASE("a stop string is held back, cut off, and reported to the batcher once") {
  request asked = asking("hello");
  asked.sampling.stop = {"STOP"};
  fixture r(asked);
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
  r.tokens("yz"); // from steps that were prepared before the stop
  CHECK(r.events.size() == n);
  CHECK(r.n_over == 1);
}

TEST_CASE("an end id ends a choice and its own text is not shown") {
  fixture r(asking("hello"));
  r.start();
  token_ready end = fixture::token_of(scripted::eos);
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
  fixture r(asked);
  r.start();
  token_ready end = fixture::token_of('z', 1);
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
  fixture r(asking("hello"));
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
  fixture r(asking("hello"));
  r.start();
  r.tokens("ab");
  r.core.expire();
  CHECK(r.events.back().error->code == errc::timed_out);
  CHECK(r.events.back().error->message.find("2 output tokens") != std::string::npos);
  CHECK(r.events.back().last);
  CHECK(r.n_released == 1);
  // No event follows the last one.
  const std::size_t n = r.events.size();
  r.tokens("c");
  r.core.expire();
  r.core.waited_too_long();
  r.core.failed({errc::executor_failed, "late", ""});
  r.core.cancel();
  CHECK(r.events.size() == n);
  CHECK(r.n_released == 1);
  CHECK(r.n_over == 1);
  CHECK(r.n_waited == 0);
  CHECK(r.stats.read().finished_error == 1);
  CHECK(r.stats.read().finished_abort == 0);
}

TEST_CASE("a request that the batcher lost is not released there again") {
  fixture r(asking("hello"));
  r.start();
  r.core.failed({errc::queue_full, "the queue is full (7 waiting); retry later", ""});
  CHECK(r.events.back().error->code == errc::queue_full);
  CHECK(r.events.back().error->retry_after_s == 7);
  CHECK(r.n_released == 0);
  CHECK(r.n_over == 1);
  fixture received(asking("hello"));
  received.start();
  received.core.failed({errc::queue_full, "the queue is full; retry in 3 s", "", 3});
  CHECK(received.events.back().error->retry_after_s == 3); // equal to the number in the message
}

TEST_CASE("a request survives the loss of its batcher once, unless it has streamed") {
  const request_error lost{errc::executor_failed, "lost", ""};
  fixture r(asking("hello"));
  r.start();
  r.core.batcher_lost(lost);
  CHECK(r.submitted.size() == 2);
  r.core.queued();
  CHECK(r.events.size() == 1); // the queued event is sent only once
  r.core.batcher_lost(lost);
  CHECK(r.submitted.size() == 2);
  REQUIRE(r.events.back().error);
  CHECK(r.n_over == 1);
  fixture streamed(asking("hello"));
  streamed.start();
  streamed.tokens("a");
  streamed.core.batcher_lost(lost);
  CHECK(streamed.submitted.size() == 1);
  CHECK(streamed.events.back().error);
}

TEST_CASE("the loss of the compiler ends a request that waits for its grammar, and no other") {
  const request_error lost{errc::executor_failed, "lost", ""};
  request asked = asking("hello");
  asked.grammar.emplace();
  for (const bool is_compiled : {false, true}) {
    fixture r(asked);
    r.start();
    const auto grammar = twill::test::compiled(twill::test::schema_spec("{}"));
    REQUIRE(r.ordered.size() == 1);
    if (is_compiled) r.core.grammar({grammar, twill::test::byte_vocabulary()});
    r.core.compiler_lost(lost);
    CHECK(r.n_over == (is_compiled ? 0 : 1));
  }
}

TEST_CASE("what was held back comes with the last token, whatever ends the output") {
  request asked = asking("hello", 10);
  asked.sampling.stop = {"STOP"};
  asked.sampling.stop_token_ids = {'!'};
  for (const bool stopped : {false, true}) {
    fixture r(asked);
    r.start();
    r.tokens("abST");
    r.core.token(fixture::token_of(0xe2), now); // the first byte of a character
    auto last = fixture::token_of(stopped ? '!' : 0x82);
    (stopped ? last.stopped : last.length) = true;
    r.core.token(last, now);
    CHECK(r.text() == "abST\xef\xbf\xbd");
    CHECK(r.events.back().stop_token == (stopped ? '!' : -1));
  }
  fixture cut(asked);
  cut.start();
  cut.tokens("abSTO");
  auto end_id = fixture::token_of('!');
  end_id.stopped = true;
  cut.core.token(end_id, now);
  CHECK(cut.text() == "abSTO");
  asked.sampling.include_stop_str_in_output = true;
  fixture whole(asked);
  whole.start();
  whole.tokens("ab");
  auto last = fixture::token_of('!');
  last.stopped = true;
  whole.core.token(last, now);
  CHECK(whole.text() == "ab!");
}

TEST_CASE("nothing stops before min_tokens, and everything from there on") {
  request asked = asking("hello", 10);
  asked.sampling.stop = {"b"};
  asked.sampling.min_tokens = 3;
  fixture r(asked);
  r.start();
  r.tokens("ab");
  CHECK(r.text() == "ab");
  r.tokens("b");
  CHECK(r.text() == "ab");
  CHECK(r.events.back().finish == finish_reason::stop);
}

TEST_CASE("a callback that throws ends its own request only") {
  int calls = 0;
  fixture r(asking("hello"), [&calls](event) {
    if (++calls == 2) throw std::runtime_error("broken reader");
  });
  r.start();
  r.tokens("a");
  CHECK(calls == 2);
  CHECK(r.n_released == 1);
  CHECK(r.n_over == 1);
  r.tokens("b");
  CHECK(calls == 2);
  request asked = asking("ab");
  asked.prompt_logprobs = 0;
  fixture scored(asked, [](event) { throw std::runtime_error("broken reader"); });
  scored.start();
  scored.core.scored({std::make_shared<std::vector<prompt_score>>(1)});
  CHECK(scored.n_released == 1);
  CHECK(scored.n_over == 1);
}

TEST_CASE("log-probabilities come with the bytes of their tokens") {
  fixture r(asking("hello"));
  r.start();
  token_ready ready = fixture::token_of('a');
  ready.logprob = -0.5f;
  ready.top = {{'a', -0.5f}, {'b', -1.5f}};
  r.core.token(ready, now);
  const token_output& out = r.events.back().tokens.at(0);
  CHECK(out.chosen.id == 'a');
  CHECK(out.chosen.bytes == "a");
  REQUIRE(out.top.size() == 2);
  CHECK(out.top[1].bytes == "b");
}

TEST_CASE("an output that is parsed comes as reasoning, text and calls, and ends as tool_calls") {
  chat_fixture r(calling());
  r.start_chat();
  r.tokens("<think>hm</think>ok<tool_call>\n{\"name\": \"look\", \"arguments\": {\"a\": 1}}\n"
           "</tool_call>");
  end(r);
  CHECK(r.text() == "");
  CHECK(parts_of(r.events) == "R:hmT:ok<lookA:{\"a\": 1}>");
  CHECK(r.events.back().finish == finish_reason::tool_calls);
}

TEST_CASE("a chat without max_tokens has the configured length, and a text none") {
  twill::config::limit_options limits;
  limits.default_max_tokens = 7;
  request chat = calling();
  chat.sampling.max_tokens = -1;
  chat_fixture r(chat, limits);
  r.start_chat();
  CHECK(r.submitted.at(0).spec.max_new == 7);
  fixture text(asking("hello", -1), nullptr, nullptr, limits);
  text.start();
  CHECK(text.submitted.at(0).spec.max_new == 95);
}

TEST_CASE("a call that breaks off is no tool call, and length stays length") {
  chat_fixture r(calling());
  r.start_chat();
  r.tokens("<tool_call>\n{\"name\": \"look\", \"arguments\": {\"a\"");
  token_ready last = fixture::token_of(':');
  last.length = true;
  r.core.token(last, now);
  CHECK(parts_of(r.events) == "<lookA:{\"a\":>!");
  CHECK(r.events.back().finish == finish_reason::length);
}

TEST_CASE("stop strings are looked for before calls are parsed") {
  request asked = calling();
  asked.sampling.stop = {"STOP"};
  chat_fixture r(asked);
  r.start_chat();
  r.tokens("okST");
  CHECK(parts_of(r.events) == "T:ok");
  r.tokens("OP<tool_call>");
  CHECK(parts_of(r.events) == "T:ok");
  CHECK(r.events.back().finish == finish_reason::stop);
}

TEST_CASE("the tools of a chat count as bytes of its prompt") {
  chat_prompt chat;
  const auto without = prompt_bytes(chat);
  chat.tools = twill::value(std::string(1000, 'x'));
  CHECK(prompt_bytes(chat) >= without + 1000);
}

TEST_CASE("a chat whose turns may be left out leaves room for its output") {
  const auto said = [](const char* role, const std::string& text) {
    return twill::value_object{{"role", role}, {"content", text}};
  };
  // The text that is submitted, or the error. A token is a byte, and each message has ten bytes.
  const auto outcome = [&](std::int32_t for_output, std::int32_t max_tokens, std::int64_t kv_tokens,
                           const std::string& last = "the last :") {
    twill::value_list messages{said("system", "be brief: ")};
    for (int turn = 0; turn < 4; ++turn) {
      messages.push_back(said("user", "question " + std::to_string(turn)));
      messages.push_back(said("assistant", "answer   " + std::to_string(turn)));
    }
    messages.push_back(said("user", last));
    chat_prompt chat;
    chat.messages = messages;
    chat.drop_turns_for_output = for_output;
    request asked = asking("", max_tokens);
    asked.prompt = chat;
    chat_fixture r(asked);
    auto files = std::make_shared<twill::models::model>();
    files->chat = twill::models::chat_template::parse(
                      "{% for m in messages %}{{ m.content }}{% endfor %}", "", "")
                      .value();
    r.start_with(files, 80, kv_tokens);
    if (r.submitted.empty()) return r.events.back().error->message;
    const auto& ids = *r.submitted[0].spec.prompt;
    return std::string(ids.begin(), ids.end());
  };
  const std::string all = "be brief: question 0answer   0question 1answer   1question 2answer   2"
                          "question 3answer   3the last :";
  CHECK(outcome(-1, -1, 1000).starts_with("the prompt must be < 80 tokens"));
  CHECK(outcome(10, -1, 1000) == "be brief: " + all.substr(50));
  CHECK(outcome(10, -1, 50) == "be brief: " + all.substr(70)); // also the KV cache must have room
  CHECK(outcome(30, 30, 1000) == "be brief: " + all.substr(70));
  CHECK(outcome(20, 20, 1000) == "be brief: " + all.substr(50));
  CHECK(outcome(60, 60, 1000) == "be brief: the last :");
  CHECK(outcome(61, 61, 1000).starts_with("`max_tokens` must be <= 60 with 20 prompt tokens"));
  CHECK(outcome(10, -1, 1000, std::string(300, 'x')).starts_with("the prompt must be < 80 tokens"));
  CHECK(
      outcome(10, -1, 1000, std::string(3000, 'x')).starts_with("`prompt` must be <= 1000 bytes"));
}

TEST_CASE("an answer goes on from the last message where the template shows its end") {
  const auto prompt_of = [](const char* source) {
    chat_prompt chat;
    chat.continue_last = true;
    chat.messages =
        twill::value_list{twill::value_object{{"role", "user"}, {"content", "sum?"}},
                          twill::value_object{{"role", "assistant"}, {"content", "It is"}}};
    request asked = asking("", 4);
    asked.prompt = chat;
    chat_fixture r(asked);
    auto files = std::make_shared<twill::models::model>();
    files->chat = twill::models::chat_template::parse(source, "", "").value();
    r.start_with(files, 80, 1000);
    if (r.submitted.empty()) return r.events.back().error->message;
    const auto& ids = *r.submitted[0].spec.prompt;
    return std::string(ids.begin(), ids.end());
  };
  const std::string each = "{% for m in messages %}{{ m.role[0] }}:{{ m.content }};{% endfor %}";
  CHECK(prompt_of((each + "{% if add_generation_prompt %}a:{% endif %}").c_str()) ==
        "u:sum?;a:It is");
  // No new message begins, so add_generation_prompt is false.
  CHECK(prompt_of(("{% if add_generation_prompt %}a:{% endif %}" + each).c_str()) ==
        "u:sum?;a:It is");
  CHECK(prompt_of((each + "{{ messages[0].content }}").c_str())
            .starts_with("`messages` must not end with a message of the assistant here"));
}

TEST_CASE("tool_choice none hides the tools and leaves text as it is") {
  chat_fixture r(calling({tool_choice_kind::none, "", true}));
  r.start_chat();
  REQUIRE(r.submitted.size() == 1);
  CHECK(r.submitted[0].spec.prompt->size() == 2); // "hi"
  r.tokens("<tool_call>");
  end(r);
  CHECK(parts_of(r.events) == "T:<tool_call>");
  CHECK(r.events.back().finish == finish_reason::stop);
}

TEST_CASE("a call that must be made is ordered as a grammar, and refusals name the field") {
  chat_fixture r(calling({tool_choice_kind::named, "look", true}));
  r.start_chat();
  CHECK(r.submitted.empty());
  REQUIRE(r.ordered.size() == 1);
  REQUIRE(r.ordered[0].spec.frames.size() == 1);
  CHECK_FALSE(r.ordered[0].spec.repeated);
  CHECK(r.ordered[0].spec.frames[0].schema == R"({"type":"object"})");
  r.core.grammar({twill::failure{twill::models::grammar::errc::timed_out, "it took too long"}, {}});
  REQUIRE(r.events.back().error);
  CHECK(r.events.back().error->code == errc::grammar_refused);
  CHECK(r.events.back().error->param == "tools");
  CHECK(*r.ordered[0].abandoned);

  chat_fixture busy(calling({tool_choice_kind::named, "look", true}));
  busy.start_chat();
  busy.core.grammar({twill::failure{twill::models::grammar::errc::overdue, "busy"}, {}});
  CHECK(busy.events.back().error->code == errc::queue_timed_out);

  chat_fixture unknown(calling({tool_choice_kind::named, "other", true}));
  unknown.start_chat();
  CHECK(unknown.events.back().error->code == errc::invalid_argument);
  CHECK(unknown.events.back().error->param == "tool_choice");

  chat_fixture speechless(calling({tool_choice_kind::required, "", true}));
  speechless.answers.calls.reset();
  speechless.start_chat();
  CHECK(speechless.events.back().error->code == errc::grammar_refused);
  CHECK(speechless.events.back().error->param == "tool_choice");
}

TEST_CASE("grammars are ordered by client, and one that is overdue is the server's fault") {
  auto asked = calling({tool_choice_kind::named, "look", true});
  asked.client = "192.0.2.7";
  chat_fixture r(asked);
  r.start_chat();
  CHECK(r.ordered.at(0).client == "192.0.2.7");
  r.core.grammar_overdue();
  REQUIRE(r.events.back().error);
  CHECK(r.events.back().error->code == errc::queue_timed_out);
  CHECK(r.events.back().error->message.find("`structured.wait_timeout`") != std::string::npos);
  CHECK(r.events.back().error->param == "tools");
  CHECK(*r.ordered[0].abandoned);

  chat_fixture in_time(asked);
  in_time.start_chat();
  in_time.core.grammar(
      {twill::test::compiled(in_time.ordered.at(0).spec), twill::test::byte_vocabulary()});
  REQUIRE(in_time.submitted.size() == 1);
  in_time.core.grammar_overdue();
  CHECK_FALSE(in_time.core.is_over());
}

TEST_CASE("a call that must be made and is cut before its name is a call all the same") {
  chat_fixture r(calling({tool_choice_kind::named, "look", true}));
  r.start_chat();
  r.core.grammar({twill::test::compiled(r.ordered.at(0).spec), twill::test::byte_vocabulary()});
  token_ready last;
  SECTION("behind its marker") {
    r.tokens("<tool_call>\n{\"na");
    last = fixture::token_of('m');
  }
  SECTION("in its marker") {
    r.tokens("<tool");
    last = fixture::token_of('_');
  }
  last.length = true;
  r.core.token(last, now);
  CHECK(parts_of(r.events) == "<look>!");
  CHECK(r.events.back().finish == finish_reason::length);
}

TEST_CASE("a tool whose parameters are no JSON Schema is refused, also where it may stay unused") {
  request asked = calling();
  std::get<chat_prompt>(asked.prompt).tools = twill::value_list{twill::value_object{
      {"type", "function"},
      {"function", twill::value_object{{"name", "look"},
                                       {"parameters", twill::value_object{{"type", "dict"}}}}}}};
  chat_fixture r(asked);
  r.start_chat();
  REQUIRE(r.events.back().error);
  CHECK(r.events.back().error->code == errc::invalid_argument);
  CHECK(r.events.back().error->param == "tools");
  CHECK(r.events.back().error->message ==
        "`tools` must have valid JSON Schemas as `parameters`; those of \"look\" are none: `type` "
        "must name null, boolean, integer, number, string, array or object, not dict (at #)");
}

TEST_CASE("a schema beside tools lets an answer or one call through") {
  request asked = calling();
  asked.grammar.emplace();
  chat_fixture r(asked);
  r.start_chat();
  REQUIRE(r.ordered.size() == 1);
  CHECK(r.ordered[0].spec.frames.size() == 2);
  CHECK(r.ordered[0].spec.frames[1].before == "");
}

TEST_CASE("a request that ends while its grammar compiles abandons it") {
  request asked = asking("hello");
  asked.grammar.emplace();
  fixture r(asked);
  r.start();
  REQUIRE(r.ordered.size() == 1);
  CHECK_FALSE(*r.ordered[0].abandoned);
  r.core.cancel();
  CHECK(*r.ordered[0].abandoned);
  CHECK(r.n_over == 1);
}

TEST_CASE("only the last prompt tokens are kept when asked for") {
  request asked = asking("hello");
  asked.truncate_prompt_tokens = 2;
  fixture r(asked);
  r.start();
  CHECK(*r.submitted.at(0).spec.prompt == std::vector<std::int32_t>{'l', 'o'});
  asked.truncate_prompt_tokens = -3;
  CHECK(refusal(asked).param == "truncate_prompt_tokens");
}

TEST_CASE("the output may take what room there is where the request says so") {
  // A prompt of five tokens, a context of 100 tokens, and a KV cache of `kv_tokens`.
  const auto max_new = [](std::int32_t max_tokens, bool may_shrink, std::int64_t kv_tokens) {
    request asked = asking("hello", max_tokens);
    asked.shorten_output = may_shrink;
    fixture r(asked);
    r.start(100, kv_tokens);
    return r.submitted.empty() ? r.events.at(0).error->message
                               : std::to_string(r.submitted[0].spec.max_new);
  };
  CHECK(max_new(95, false, 200) == "95");
  CHECK(max_new(96, false, 200).starts_with("`max_tokens` must be <= 95"));
  CHECK(max_new(96, true, 200) == "95");
  CHECK(max_new(2'000'000'000, true, 200) == "95");
  CHECK(max_new(2'000'000'000, true, 50) == "46"); // the last token drawn needs no place
  CHECK(max_new(7, true, 200) == "7");
  CHECK(max_new(1, true, 5) == "1");
  CHECK(max_new(1, true, 4).starts_with("the prompt and `max_tokens` together must be <= 5"));
}

TEST_CASE("tokens of an earlier exchange stand before the prompt's own") {
  const auto submitted = [](decltype(request::prompt) prompt) {
    request asked = asking("", 4);
    asked.prompt = std::move(prompt);
    chat_fixture r(asked);
    auto files = std::make_shared<twill::models::model>();
    files->chat = twill::models::chat_template::parse(
                      "{% for m in messages %}{{ m.content }}{% endfor %}", "", "")
                      .value();
    r.start_with(files, 80, 1000);
    if (r.submitted.empty()) return r.events.back().error->message;
    const auto& ids = *r.submitted[0].spec.prompt;
    return std::string(ids.begin(), ids.end());
  };
  chat_prompt chat;
  chat.messages = twill::value_list{twill::value_object{{"role", "user"}, {"content", "more"}}};
  chat.before = {'o', 'n', 'c', 'e', ' '};
  CHECK(submitted(chat) == "once more");
  CHECK(submitted(text_prompt{"again", true, {'a', ' '}}) == "a again");
  CHECK(submitted(text_prompt{"x", true, {1'000'000}}).starts_with("`context[0]` must be in [0, "));
  chat.before.assign(100, 'x');
  CHECK(submitted(chat).starts_with("the prompt must be < 80 tokens (the context limit)"));
}

namespace {

/// Encodes bytes, and adds the id 1 at the beginning of a text.
class begun_bytes final : public twill::models::tokenizer {
public:
  twill::models::result<std::vector<std::int32_t>>
  encode(std::string_view text, const twill::models::encode_options& how) const override {
    std::vector<std::int32_t> ids;
    if (how.add_special) ids.push_back(1);
    for (const char c : text)
      ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }
  twill::models::result<std::vector<std::int32_t>>
  encode_prompt(std::string_view text, const twill::models::byte_ranges&) const override {
    return encode(text, {.add_special = true});
  }
  std::string token_bytes(std::int32_t id, bool special) const override {
    return bytes_.token_bytes(id, special);
  }
  std::int32_t vocab_size() const override { return bytes_.vocab_size(); }
  bool is_special(std::int32_t id) const override { return id == 1; }
  const std::vector<std::int32_t>& end_ids() const override { return bytes_.end_ids(); }
  std::int32_t bos_id() const override { return 1; }
  std::int32_t eos_id() const override { return bytes_.eos_id(); }
  std::string kind() const override { return "begun bytes"; }

private:
  scripted::byte_tokenizer bytes_;
};

} // namespace

TEST_CASE("what begins a text does not stand again behind an earlier exchange") {
  served_model model;
  auto files = std::make_shared<twill::models::model>();
  files->text = std::make_shared<begun_bytes>();
  files->chat = twill::models::chat_template::parse("{{ messages[0].content }}", "", "").value();
  model.files = files;
  model.max_prompt_bytes = 100;
  chat_prompt chat;
  chat.messages = twill::value_list{twill::value_object{{"role", "user"}, {"content", "b"}}};
  using ids = std::vector<std::int32_t>;
  CHECK(encode_chat(model, chat).value() == ids{1, 'b'});
  chat.before = {1, 'a'};
  CHECK(encode_chat(model, chat).value() == ids{1, 'a', 'b'});
  CHECK(encode_text(model, {"b", true, {1, 'a'}}, true).value() == ids{1, 'a', 'b'});
  CHECK(encode_text(model, {"b", false, {1, 'a'}}, true).value() == ids{1, 'a', 'b'});
  CHECK(encode_text(model, {"b", true}, true).value() == ids{1, 'b'});
}

TEST_CASE("a request without output ends with its first event, and reaches no batcher") {
  request asked = asking("hello", 0);
  asked.sampling.n = 2;
  asked.echo_prompt_ids = true;
  fixture r(asked);
  r.start(5, 100); // the prompt may fill the context
  CHECK(r.submitted.empty());
  REQUIRE(r.events.size() == 3);
  CHECK(r.events[0].started);
  CHECK(r.events[0].prompt_ids.size() == 5);
  CHECK(r.events[1].finish == finish_reason::length);
  CHECK_FALSE(r.events[1].last);
  CHECK(r.events[2].choice == 1);
  CHECK(r.events[2].last);
  CHECK(r.n_over == 1);
  CHECK(r.n_released == 0);
}

TEST_CASE("the first event waits for the prompt's scores and holds them") {
  for (const std::int32_t max_tokens : {0, 4}) {
    CAPTURE(max_tokens);
    request asked = asking("abc", max_tokens);
    asked.prompt_logprobs = 1;
    fixture r(asked);
    r.start();
    REQUIRE(r.submitted.size() == 1);
    CHECK(r.submitted[0].spec.prompt_logprobs == 1);
    CHECK(r.events.empty());
    auto scores = std::make_shared<std::vector<prompt_score>>(2);
    (*scores)[0] = {-1.0f, {{'x', -0.5f}}};
    (*scores)[1] = {-2.0f, {{'c', -2.0f}}};
    r.core.scored({scores});
    const event& first = r.events.at(0);
    CHECK(first.started);
    REQUIRE(first.prompt_scores.size() == 3);
    CHECK(first.prompt_scores[0].chosen.logprob != first.prompt_scores[0].chosen.logprob);
    CHECK(first.prompt_scores[0].top.empty());
    CHECK(first.prompt_scores[1].chosen.bytes == "b");
    CHECK(first.prompt_scores[1].top.at(0).bytes == "x");
    CHECK(first.prompt_scores[2].chosen.logprob == -2.0f);
    CHECK(r.n_over == (max_tokens == 0 ? 1 : 0));
    CHECK(r.n_released == (max_tokens == 0 ? 1 : 0));
    CHECK(r.events.back().last == (max_tokens == 0));
  }
  request asked = asking("abc");
  asked.prompt_logprobs = 21;
  CHECK(refusal(asked).param == "prompt_logprobs");
}

TEST_CASE("bad words become token ids at the beginning of a text and after a space") {
  request asked = asking("hello");
  asked.sampling.bad_words = {"no", "x"};
  asked.sampling.allowed_token_ids = {1, 33};
  fixture r(asked);
  r.start();
  const auto& spec = r.submitted.at(0).spec;
  CHECK(*spec.bad_words == std::vector<std::vector<std::int32_t>>{{'n', 'o'}, {'x'}});
  REQUIRE(spec.allowed->size() == 9);
  CHECK((*spec.allowed)[0] == 2);
  CHECK((*spec.allowed)[1] == 2);
  asked.grammar.emplace();
  asked.grammar_field = "response_format";
  CHECK(refusal(asked).param == "allowed_token_ids");
  CHECK(refusal(asked).message == "`allowed_token_ids` must be absent beside `response_format`, "
                                  "which decides which tokens may follow, got [1, 33]");
}

TEST_CASE("what a tenant asked is counted when a request is queued, has a token, and ends") {
  auto asked = asking("12345", 3);
  asked.tenant = "t";
  fixture r(asked);
  const auto of_tenant = [&] {
    const auto all = r.stats.read_tenants();
    REQUIRE(all.size() == 1);
    CHECK(all[0].tenant == "t");
    CHECK(all[0].model == "bytes");
    return all[0];
  };
  r.start();
  CHECK(of_tenant().requests_waiting == 1);
  r.tokens("a");
  CHECK(of_tenant().requests_waiting == 0);
  CHECK(of_tenant().requests_running == 1);
  CHECK(of_tenant().prompt_tokens == 5);
  r.core.cancel();
  const auto over = of_tenant();
  CHECK(over.requests_running == 0);
  CHECK(over.generation_tokens == 1);
  CHECK(over.finished.at("cancelled") == 1);
}

TEST_CASE("the prompt counts for the tenant once: at the first token, or at an end without one") {
  const auto counted = [](auto play, request asked) {
    fixture r(std::move(asked));
    r.start();
    play(r);
    const auto all = r.stats.read_tenants();
    REQUIRE(all.size() == 1);
    return all[0].prompt_tokens;
  };
  const auto plain = asking("12345", 3);
  CHECK(counted([](fixture& r) { r.tokens("abc"); }, plain) == 5);
  CHECK(counted([](fixture& r) { r.core.cancel(); }, plain) == 5);
  CHECK(counted([](fixture& r) { r.core.cancel(), r.core.cancel(); }, plain) == 5);
  CHECK(counted([](fixture& r) { r.core.expire(); }, plain) == 0);
  CHECK(counted([](fixture& r) { r.core.failed({errc::queue_full, "full", ""}); }, plain) == 0);
  auto alone = asking("12345", 0);
  CHECK(counted([](fixture&) {}, alone) == 5);
  alone.prompt_logprobs = 0;
  CHECK(counted([](fixture& r) { r.core.scored({std::make_shared<std::vector<prompt_score>>(4)}); },
                alone) == 5);
}

TEST_CASE("cached tokens are reported, and counted for the tenant") {
  fixture r(asking("12345", 3));
  r.start();
  auto first = fixture::token_of('a');
  first.cached_tokens = 4;
  r.core.token(first, now);
  CHECK(r.events.back().use.cached_tokens == 4);
  CHECK(r.stats.read_tenants().at(0).cached_prompt_tokens == 4);
}

TEST_CASE("of several choices the longest is observed") {
  request asked = asking("12345", 3);
  asked.sampling.n = 2;
  fixture r(asked);
  r.start();
  r.tokens("ab", 1);
  for (const std::int32_t choice : {0, 1}) {
    auto last = fixture::token_of('c', choice);
    last.length = true;
    r.core.token(last, now);
  }
  CHECK(r.stats.read().request_max_num_generation_tokens.sum == 3);
  CHECK(r.stats.read().request_generation_tokens.sum == 4);
}

TEST_CASE("a request that fails before its first token leaves nobody waiting") {
  auto asked = asking("12345", 3);
  fixture r(asked);
  r.start();
  r.core.failed({errc::queue_full, "full", ""});
  const auto all = r.stats.read_tenants();
  REQUIRE(all.size() == 1);
  CHECK(all[0].requests_waiting == 0);
  CHECK(all[0].requests_running == 0);
  CHECK(all[0].finished.at("queue_full") == 1);
}

TEST_CASE("on_end reports a request's end and usage once") {
  std::vector<request_summary> received;
  auto asked = asking("12345", 2);
  asked.client_id = "id";
  asked.on_end = [&](const request_summary& about) {
    CHECK(about.sampling != nullptr);
    CHECK(about.sampling->max_tokens == 2);
    received.push_back(about);
  };
  fixture r(asked);
  r.start();
  r.core.token(fixture::token_of('a'), now);
  CHECK(received.empty());
  auto last = fixture::token_of('b');
  last.length = true;
  r.core.token(last, now + std::chrono::milliseconds(5));
  r.core.cancel(); // too late: the request is over
  REQUIRE(received.size() == 1);
  CHECK(received[0].status == "length");
  CHECK_FALSE(received[0].failed);
  CHECK(received[0].model == "bytes");
  CHECK(received[0].client_id == "id");
  CHECK(received[0].use.completion_tokens == 2);
  CHECK(received[0].first_token == std::chrono::seconds(1));
  CHECK(received[0].last_token == std::chrono::milliseconds(1005));
  const auto stats = r.stats.read();
  const auto n_of = [](const histogram& h) {
    return std::accumulate(h.counts.begin(), h.counts.end(), std::uint64_t{0});
  };
  CHECK(stats.request_max_num_generation_tokens.sum == 2);
  CHECK(stats.request_params_n.sum == 1);
  CHECK(stats.request_params_max_tokens.sum == 2);
  CHECK(n_of(stats.request_time_per_output_token_seconds) == 1);
  CHECK(stats.request_time_per_output_token_seconds.sum == Approx(0.005));
  CHECK(n_of(stats.request_inference_time_seconds) == 1);
}

TEST_CASE("the end of a refused or cancelled request is reported too") {
  for (const bool refused : {false, true}) {
    std::vector<std::string> received;
    auto asked = asking("12345", 3);
    asked.on_end = [&](const request_summary& about) {
      CHECK(about.failed == refused);
      CHECK_FALSE(about.first_token.has_value());
      received.emplace_back(about.status);
    };
    fixture r(asked);
    r.start();
    if (refused)
      r.core.failed({errc::queue_full, "full", ""});
    else
      r.core.cancel();
    CHECK(received == std::vector<std::string>{refused ? "queue_full" : "cancelled"});
  }
}

TEST_CASE("the line about a request holds its numbers, and an id cannot break it") {
  using std::chrono::milliseconds;
  request_summary about;
  about.id = 7;
  about.client_id = "a\"b";
  about.tenant = "t";
  about.model = "m";
  about.use = {5, 4, 3};
  about.status = "stop";
  about.total = milliseconds(20);
  CHECK(text_of(about) == "request 7 ended: status=stop id=a\"b tenant=t model=m prompt_tokens=5 "
                          "cached_tokens=4 output_tokens=3 total_ms=20.0");
  about.queued = milliseconds(1);
  about.first_token = milliseconds(2);
  CHECK(
      members_of(about) ==
      R"("request":7,"id":"a\"b","tenant":"t","model":"m","status":"stop","prompt_tokens":5,)"
      R"("cached_tokens":4,"output_tokens":3,"queue_ms":1.0,"first_token_ms":2.0,"total_ms":20.0)");
  about.client_id = "a tenant=other";
  CHECK(text_of(about).find("id=a?tenant=other tenant=t") != std::string::npos);
  about.client_id = "a\x7f\n"; // a terminal would interpret these characters
  CHECK(text_of(about).find("id=a?? ") != std::string::npos);
  about.client_id = std::string(1000, 'x');
  CHECK(text_of(about).size() < 300);
}

TEST_CASE("scores of a prompt are counted: too many for one request, or for all, are refused") {
  const auto scored = [](std::int32_t tokens, std::int32_t alternatives) {
    request r;
    r.prompt = token_prompt(static_cast<std::size_t>(tokens), 65);
    r.sampling.max_tokens = 1;
    r.prompt_logprobs = alternatives;
    return r;
  };
  constexpr std::int32_t context = 1'000'000;
  const auto too_much = refusal(scored(100'000, 20), context, context);
  CHECK(too_much.code == errc::invalid_argument);
  CHECK(too_much.param == "prompt_logprobs");
  CHECK(too_much.message.find("100000 prompt tokens") != std::string::npos);
  CHECK(score_memory::taken_by_all() == 0);
  {
    const auto start = [](fixture& r) { r.start(context, context); };
    fixture plain(asking("hi"));
    start(plain);
    CHECK(score_memory::taken_by_all() == 0); // requests without scores take no memory for them
    std::vector<std::unique_ptr<fixture>> running;
    for (int i = 0; i < 4; ++i) {
      running.push_back(std::make_unique<fixture>(scored(50'000, 20)));
      start(*running.back());
      CHECK(running.back()->submitted.size() == 1);
    }
    CHECK(score_memory::taken_by_all() > 200'000 * 20 * 40);
    const auto full = refusal(scored(50'000, 20), context, context);
    CHECK(full.code == errc::queue_full);
    CHECK(full.retry_after_s == 7);
    running.pop_back();
    fixture next(scored(50'000, 20));
    start(next);
    CHECK(next.submitted.size() == 1);
  }
  CHECK(score_memory::taken_by_all() == 0);
}

TEST_CASE("the times of a request are observed once it is whole, and only then") {
  using std::chrono::milliseconds;
  fixture r(asking("12345", 3));
  r.start();
  const auto submitted = now - std::chrono::seconds(1);
  for (int i = 0; i < 3; ++i) {
    auto ready = fixture::token_of('a');
    ready.scheduled = submitted + milliseconds(250);
    ready.length = i == 2;
    r.core.token(ready, submitted + milliseconds(500 + 125 * i));
  }
  const engine_stats all = r.stats.read();
  const auto has = [](const histogram& h, double value) {
    std::uint64_t n = 0;
    for (const auto count : h.counts)
      n += count;
    CHECK(n == 1);
    CHECK(h.sum == Approx(value));
    const auto bound = std::lower_bound(h.bounds.begin(), h.bounds.end(), value);
    CHECK(h.counts[static_cast<std::size_t>(bound - h.bounds.begin())] == 1);
  };
  has(all.time_to_first_token_seconds, 0.5);
  has(all.request_queue_time_seconds, 0.25);
  has(all.request_prefill_time_seconds, 0.25);
  has(all.request_decode_time_seconds, 0.25);
  has(all.e2e_request_latency_seconds, 0.75);
  has(all.request_prompt_tokens, 5);
  has(all.request_generation_tokens, 3);
  CHECK(all.finished_length == 1);
  const auto tenants = r.stats.read_tenants();
  REQUIRE(tenants.size() == 1);
  has(tenants[0].time_to_first_token_seconds, 0.5);
  has(tenants[0].request_queue_time_seconds, 0.25);
  has(tenants[0].e2e_request_latency_seconds, 0.75);
  has(tenants[0].time_per_output_token_seconds, 0.125);

  fixture cancelled(asking("12345", 3));
  cancelled.start();
  cancelled.core.token(fixture::token_of('a'), now);
  cancelled.core.cancel();
  CHECK(cancelled.stats.read().e2e_request_latency_seconds.sum == 0);
  CHECK(cancelled.stats.read().request_prompt_tokens.sum == 0);
}
