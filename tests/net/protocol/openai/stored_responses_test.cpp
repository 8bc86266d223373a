// Stored responses in the format of the Responses API: what the live stream sends, what later reads
// return, and what continues a conversation.
#include <random>

#include "net/error_map.hpp"
#include "net/protocol/openai/responses_reply.hpp"
#include "net/protocol/openai/stored_responses.hpp"
#include "net/stored/stored_record.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::testing;

namespace {

/// The stream that an HTTP client is sent for these events.
std::string stream_of(reply_encoder& encoder, const std::vector<actors::event>& events) {
  std::string out;
  for (auto ev : events) {
    if (ev.error) {
      encoder.on_error(from_engine(std::move(*ev.error)), out);
      return out;
    }
    encoder.on_event(0, std::move(ev), out);
  }
  return out;
}

/// The blocks of a stream after the block with this number.
std::string after(const std::string& stream, std::size_t number) {
  std::size_t at = 0;
  for (std::size_t i = 0; i <= number && at < stream.size(); ++i)
    at = stream.find("\n\n", at) + 2;
  return stream.substr(at);
}

std::size_t count_of(const std::string& stream) {
  std::size_t n = 0;
  for (auto at = stream.find("\n\n"); at != std::string::npos; at = stream.find("\n\n", at + 2))
    ++n;
  return n;
}

class script_maker {
public:
  explicit script_maker(unsigned seed) : random_(seed) {}
  std::size_t below(std::size_t n) { return random_() % n; }
  bool coin() { return below(2) == 0; }

  actors::event step() {
    using kind = actors::output_part_kind;
    auto ev = piece(std::string(1, static_cast<char>('a' + below(26))), 100 + made_);
    ev.use.completion_tokens = ++made_;
    if (below(3) > 0) ev.text.clear(); // as when a parser holds the text back
    if (ev.text.empty())
      for (auto n = below(3); n > 0; --n) {
        const auto what = below(5);
        if (what == 0)
          ev.parts.push_back({kind::text, "text\n\"", -1, true, ""});
        else if (what == 1)
          ev.parts.push_back({kind::reasoning, "hm ", -1, true, ""});
        else if (call_ < 0 || what == 2)
          ev.parts.push_back({kind::call_begin, "f", ++call_, true, coin() ? "call_x" : ""});
        else
          ev.parts.push_back(
              {what == 3 ? kind::call_arguments : kind::call_end, "{}", call_, coin(), ""});
      }
    return ev;
  }

private:
  std::mt19937 random_;
  std::int32_t made_ = 0;
  std::int32_t call_ = -1;
};

std::string body_of(script_maker& make, bool background) {
  std::string body = R"({"input":"hi","stream":true)";
  if (background) body += R"(,"background":true)";
  if (make.coin()) body += R"(,"include":["message.output_text.logprobs"],"top_logprobs":2)";
  if (make.coin()) body += R"(,"parallel_tool_calls":false)";
  if (make.coin()) body += R"(,"temperature":0.3,"max_output_tokens":50,"user":"u")";
  if (make.coin()) body += R"(,"metadata":{"a":"b"},"instructions":"be brief")";
  if (make.coin())
    body += R"(,"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}])";
  return body + "}";
}

} // namespace

TEST_CASE("A stream that is read later equals the live one, from any number on") {
  codec_fixture fixture;
  fixture.model.default_sampling.temperature = 0.6f;
  script_maker make(47);
  for (int round = 0; round < 400; ++round) {
    const bool background = make.coin();
    const auto parsed = json(body_of(make, background));
    auto live = parse_responses(parsed, fixture.context);
    REQUIRE(live.ok());
    REQUIRE(live.value().stored.has_value());
    const auto head = read_head(write_head(*live.value().stored));
    REQUIRE(head.has_value());

    std::vector<actors::event> events;
    script_maker steps(static_cast<unsigned>(round));
    // A request that the engine refuses at once is stored only if it runs in the background.
    const bool refused = background && make.below(8) == 0;
    if (!refused) {
      events.push_back(started());
      for (auto n = make.below(12); n > 0; --n)
        events.push_back(steps.step());
    }
    const auto end = make.below(5);
    static constexpr actors::errc errors[] = {
        actors::errc::cancelled,     actors::errc::timed_out,  actors::errc::executor_failed,
        actors::errc::model_changed, actors::errc::queue_full, actors::errc::too_large};
    if (refused || end < 2)
      events.push_back(failed(errors[make.below(std::size(errors))], "it failed"));
    else
      events.push_back(finished(static_cast<actors::finish_reason>(end - 2)));

    std::vector<std::string> records;
    for (const auto& ev : events)
      records.push_back(write_record(ev));
    if (make.coin())
      records.insert(records.begin() + static_cast<std::ptrdiff_t>(make.below(records.size())),
                     resume_mark());
    std::vector<actors::event> stored(1); // the empty event: the response is stored
    for (const auto& record : records)
      if (auto ev = read_record(record)) stored.push_back(std::move(*ev));

    if (background) events.insert(events.begin(), actors::event{});
    const auto received = stream_of(*live.value().encoder, events);
    const auto later = [&](std::int64_t from) {
      auto turn = stored_turn(*head, fixture.engine);
      REQUIRE(turn.ok());
      return stream_of(*stored_response_stream(std::move(turn).value(), from), stored);
    };
    INFO(json_text(parsed));
    REQUIRE(later(-1) == received);
    const auto n = count_of(received);
    for (const auto from : {std::size_t{0}, make.below(n), n - 1, n + 5})
      REQUIRE(later(static_cast<std::int64_t>(from)) == after(received, from));

    // The stored object is that of the last event.
    const auto turn = stored_turn(*head, fixture.engine);
    const auto object = replay_response(turn.value(), records).object();
    REQUIRE(contains(received.substr(received.rfind("data: ")), "\"response\":" + object + "}"));
  }
}

TEST_CASE("A response that failed before it began is shown as failed") {
  codec_fixture fixture;
  auto live = parse_responses(json(R"({"input":"hi"})"), fixture.context);
  const auto turn = stored_turn(*live.value().stored, fixture.engine);
  REQUIRE(turn.ok());
  const auto records = {write_record(failed(actors::errc::model_changed, "other files"))};
  const auto object = json(replay_response(turn.value(), records).object());
  CHECK(at(object, "status") == value("failed"));
  CHECK(at(object, "error", "code") == value("model_changed"));
  const auto stream = stream_of(*stored_response_stream(turn.value(), -1),
                                {actors::event{}, failed(actors::errc::model_changed, "other")});
  CHECK(count_of(stream) == 3);
  CHECK(contains(stream, "event: response.created\n"));
  CHECK(contains(stream, "event: response.failed\n"));
}

TEST_CASE("A reader that gets a stop or a deletion gets no failure") {
  codec_fixture fixture;
  auto live = parse_responses(json(R"({"input":"hi","background":true})"), fixture.context);
  const auto turn = stored_turn(*live.value().stored, fixture.engine);
  const auto stream = stream_of(*stored_response_stream(turn.value(), -1),
                                {actors::event{}, failed(actors::errc::interrupted, "stop")});
  CHECK(count_of(stream) == 3); // created, queued, error
  CHECK(stream.find("event: error\n") > stream.find("event: response.queued\n"));
  CHECK_FALSE(contains(stream, "response.failed"));
}

TEST_CASE("A background reply that is whole is queued") {
  codec_fixture fixture;
  auto live = parse_responses(json(R"({"input":"hi","background":true})"), fixture.context);
  REQUIRE(live.ok());
  std::string out;
  actors::event begun;
  begun.last = true;
  live.value().encoder->on_event(0, std::move(begun), out);
  live.value().encoder->on_end(out);
  CHECK(at(json(out), "status") == value("queued"));
  CHECK(at(json(out), "background") == value(true));
  CHECK_FALSE(
      parse_responses(json(R"({"input":"hi","background":true,"store":false})"), fixture.context)
          .ok());
}

TEST_CASE("A conversation goes on from what is stored, and from nothing that has not finished") {
  codec_fixture fixture;
  auto live = parse_responses(json(R"({"input":"hi","instructions":"be brief"})"), fixture.context);
  const auto turn = stored_turn(*live.value().stored, fixture.engine).value();
  std::vector<std::string> records{write_record(started()), write_record(piece("yes"))};
  CHECK(remember_stored(turn, {}) == nullptr);
  CHECK(remember_stored(turn, records) == nullptr);
  auto failing = records;
  failing.push_back(write_record(failed(actors::errc::cancelled, "")));
  CHECK(remember_stored(turn, failing) == nullptr);
  records.push_back(write_record(finished()));
  const auto first = remember_stored(turn, records);
  REQUIRE(first != nullptr);
  CHECK(first->messages.size() == 2);

  fixture.find_previous = [&](const std::string& id, const std::string&) {
    return id == "resp_1" ? first : nullptr;
  };
  auto second = parse_responses(
      json(R"({"previous_response_id":"resp_1","input":[{"role":"user","content":"and?"}]})"),
      fixture.context);
  REQUIRE(second.ok());
  // The history that a response continues is stored with the response.
  fixture.find_previous = [](const std::string&, const std::string&) { return nullptr; };
  const auto again = ask_stored_again(*second.value().stored, fixture.context);
  REQUIRE(again.ok());
  CHECK(again.value().messages.size() == 3);
  CHECK(again.value().echo.identity.id == second.value().stored->id);
  CHECK(input_items_of(*second.value().stored).size() == 1);
}

TEST_CASE("The items of the input are listed with ids that stay the same") {
  codec_fixture fixture;
  auto live = parse_responses(json(R"({"input":[
      {"role":"user","content":"hi"},
      {"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},
      {"type":"function_call_output","call_id":"c1","output":"4"},
      {"type":"reasoning","summary":[]},
      {"id":"msg_own","role":"assistant","content":[{"type":"output_text","text":"4"}]}]})"),
                              fixture.context);
  REQUIRE(live.ok());
  const auto items = input_items_of(*live.value().stored);
  REQUIRE(items.size() == 5);
  const auto first = json(items[0].json);
  CHECK(at(first, "type") == value("message"));
  CHECK(at(first, "content", 0, "type") == value("input_text"));
  CHECK(at(first, "content", 0, "text") == value("hi"));
  CHECK(items[0].id.starts_with("msg_"));
  CHECK(items[1].id.starts_with("fc_"));
  CHECK(items[2].id.starts_with("fco_"));
  CHECK(items[3].id.starts_with("rs_"));
  CHECK(items[4].id == "msg_own");
  const auto again = input_items_of(*live.value().stored);
  for (std::size_t i = 0; i < items.size(); ++i)
    CHECK(again[i].json == items[i].json);
  auto text = parse_responses(json(R"({"input":"hi"})"), fixture.context);
  CHECK(input_items_of(*text.value().stored).size() == 1);
}
