// A session (the actor that serves one request) that continues a request after the tokens that an
// earlier run has drawn: the text that is held back, the parsers of tool calls, the token counts
// and the tenant's charge are as that run left them.
#include <optional>
#include <string>
#include <vector>

#include "actors/port/request_summary.hpp"
#include "tests/actors/session/session_fixture.hpp"
#include "tests/catch.hpp"

using namespace session_tests;

namespace {

std::vector<std::int32_t> ids_of(const std::string& bytes) {
  std::vector<std::int32_t> ids;
  for (const unsigned char c : bytes)
    ids.push_back(c);
  return ids;
}

request going_on(request asked, const std::vector<made_choice>& made) {
  asked.made = made;
  return asked;
}

/// The parts of each event, written apart.
std::vector<std::string> parts_of_each(const std::vector<event>& events, std::size_t first) {
  std::vector<std::string> all;
  for (std::size_t i = first; i < events.size(); ++i)
    all.push_back(parts_of({events[i]}));
  return all;
}

const std::string one_call =
    "<tool_call>\n{\"name\": \"look\", \"arguments\": {\"a\": \"\xc3\xa4\"}}\n</tool_call>";

} // namespace

TEST_CASE("reasoning, text and calls go on in the middle of each") {
  const std::vector<std::string> outputs{
      "<think>hm\xe2\x82\xac</think>ok" + one_call,
      "two calls " + one_call + "\n" + one_call,
      "<thi no tag, <tool_cal no call \xf0\x9f\x98\x80",
      "<think>no end " + one_call.substr(0, 20),
      one_call.substr(0, 50), // the call is not complete
  };
  for (const std::string& output : outputs) {
    request asked = calling();
    asked.sampling.max_tokens = 200;
    chat_fixture whole(asked);
    whole.start_chat();
    whole.tokens(output);
    end(whole);
    for (std::size_t cut = 0; cut <= output.size(); ++cut) {
      INFO(output << " cut at " << cut);
      chat_fixture rest(going_on(asked, {{ids_of(output.substr(0, cut)), false}}));
      rest.start_chat();
      REQUIRE(rest.submitted.size() == 1);
      rest.tokens(output.substr(cut));
      end(rest);
      REQUIRE(rest.events.front().started);
      CHECK(parts_of_each(rest.events, 1) == parts_of_each(whole.events, cut + 1));
      CHECK(rest.events.back().finish == whole.events.back().finish);
      CHECK(rest.events.back().use.completion_tokens == whole.events.back().use.completion_tokens);
      CHECK(rest.events.back().last);
    }
  }
}

TEST_CASE("calls of a choice that is over count among those of the request") {
  request asked = calling();
  asked.sampling.n = 2;
  asked.sampling.max_tokens = 200;
  std::optional<request_summary> received;
  asked.on_end = [&](const request_summary& about) { received = about; };
  auto over = ids_of(one_call);
  over.push_back(scripted::eos);
  chat_fixture r(going_on(asked, {{over, true}, {ids_of("no"), false}}));
  r.start_chat();
  REQUIRE(r.submitted.size() == 1);
  CHECK(r.submitted[0].is_over(0));
  CHECK_FALSE(r.submitted[0].is_over(1));
  r.core.token(fixture::token_of('!', 0), now); // the choice is over, so this token is not reported
  CHECK(r.events.size() == 1);
  token_ready last = fixture::token_of(scripted::eos, 1);
  last.stopped = true;
  r.core.token(last, now);
  CHECK(parts_of(r.events) == "");
  CHECK(r.events.back().last);
  CHECK(r.events.back().choice == 1);
  CHECK(r.events.back().finish == finish_reason::stop);
  CHECK(r.events.back().use.completion_tokens == static_cast<std::int32_t>(over.size()) + 3);
  REQUIRE(received);
  CHECK(received->called_tools);
  CHECK(r.n_over == 1);
}

TEST_CASE("a request is submitted with what an earlier run has drawn, to each batcher") {
  request asked = asking("hello");
  asked.prompt_logprobs = 3; // the earlier run has reported these scores
  fixture r(going_on(asked, {{ids_of("abc"), false}}));
  r.start();
  REQUIRE(r.submitted.size() == 1);
  CHECK(r.submitted[0].spec.prompt_logprobs == -1);
  r.core.batcher_lost({errc::executor_failed, "lost", ""});
  REQUIRE(r.submitted.size() == 2);
  for (const submit_prompt& sent : r.submitted) {
    const auto made = sent.made_of(0);
    CHECK(std::vector<std::int32_t>(made.begin(), made.end()) == ids_of("abc"));
  }
  r.tokens("d");
  CHECK(r.events.back().use.completion_tokens == 4);
  r.core.batcher_lost({errc::executor_failed, "lost", ""});
  CHECK(r.submitted.size() == 2);
  CHECK(r.events.back().error);
}

TEST_CASE("a request that goes on and fails before its next token used nothing") {
  token_budget budget(100);
  const auto left = [&] {
    std::int64_t n = 0;
    while (n < 100 && !budget.check(n + 1, now))
      ++n;
    return n;
  };
  const auto asked = going_on(asking("12345", 50), {{ids_of("abc"), false}});
  {
    fixture r(asked, nullptr, &budget);
    r.start();
    CHECK(left() <= 46); // time refills the budget a little
    r.core.failed({errc::executor_failed, "lost", ""});
    CHECK(left() == 100);
  }
  fixture r(asked, nullptr, &budget);
  r.start();
  r.tokens("d");
  r.core.failed({errc::executor_failed, "lost", ""});
  CHECK(left() >= 91);
  CHECK(left() <= 93);
}

TEST_CASE("what no longer fits says so, where nobody asked for its length") {
  fixture r(going_on(asking("12345", -1), {{std::vector<std::int32_t>(40, 'a'), false}}));
  r.start(100, 30);
  CHECK(r.submitted.empty());
  REQUIRE(r.events.back().error);
  CHECK(r.events.back().error->code == errc::too_large);
  CHECK(r.events.back().error->message.find("40 tokens") != std::string::npos);
  CHECK(r.events.back().error->message.find("room for 26") != std::string::npos);
}
