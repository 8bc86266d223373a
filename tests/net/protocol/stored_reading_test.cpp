// stored_head, the properties of a request that are stored with its response, is enough to rebuild
// the original request and the format of its reply, also if the server's defaults have changed
// since. This holds for chat completions, completions and requests of /v1/stream.
#include "net/endpoints.hpp"
#include "net/protocol/openai/chat.hpp"
#include "net/protocol/openai/completions.hpp"
#include "net/protocol/stored_reading.hpp"
#include "net/protocol/stored_request.hpp"
#include "net/protocol/stream/stream_request.hpp"
#include "net/stored/stored_api.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::testing;

namespace {

struct stored_request {
  stored_head head;
  actors::request asked;
};

stored_request from_call(net::result<call> made) {
  if (!made.ok()) throw std::runtime_error(made.code().message);
  REQUIRE(made.value().stored.has_value());
  REQUIRE(made.value().requests.size() == 1);
  return {*made.value().stored, made.value().requests.front()};
}

stored_request from_stream(const value& message, const codec_context& context) {
  auto read = read_stream_request(message, context);
  if (!read.ok()) throw std::runtime_error(read.code().message);
  auto& [request, identity, form] = read.value();
  CHECK(form.store);
  return {head_of(identity, request.sampling, message, context.tenant), request};
}

std::vector<stored_request> one_of_each(const codec_context& context) {
  const auto chat = json(R"({"messages":[{"role":"user","content":"x"}],"store":true,"n":2})");
  const auto text = json(R"({"prompt":"x","store":true,"max_tokens":9,"n":2})");
  const auto stream = json(
      R"({"op":"submit","id":1,"messages":[{"role":"user","content":"x"}],"store":true,"n":2})");
  return {from_call(parse_chat(chat, context)), from_call(parse_completions(text, context)),
          from_stream(stream, context)};
}

} // namespace

TEST_CASE("A stored request is asked again as it was, although defaults are others") {
  codec_fixture before;
  before.model.default_sampling.temperature = 0.25f;
  before.model.default_sampling.top_k = 7;
  before.model.default_sampling.min_p = 0.125f;
  before.limits.default_max_tokens = 33;
  codec_fixture after;
  after.model.default_sampling.temperature = 0.75f;
  after.limits.default_max_tokens = 44;
  for (auto& one : one_of_each(before.context)) {
    INFO(one.head.id);
    one.head.created_unix_s = 1'700'000'000;
    const auto head = read_head(write_head(one.head));
    REQUIRE(head.has_value());
    CHECK(head->model == before.model.id);
    auto again = ask_anew(*head, after.context);
    REQUIRE(again.ok());
    const auto& sampling = again.value().sampling;
    CHECK(sampling.n == 2);
    CHECK(sampling.temperature == 0.25f);
    CHECK(sampling.top_k == 7);
    CHECK(sampling.min_p == 0.125f);
    CHECK(sampling.max_tokens == one.asked.sampling.max_tokens);
    if (const auto* chat = std::get_if<actors::chat_prompt>(&again.value().prompt))
      CHECK(chat->now_unix_s == 1'700'000'000);
    else
      CHECK(std::get<actors::text_prompt>(again.value().prompt).text == "x");
  }
}

TEST_CASE("An echoed prompt of ids is read again although its model is gone") {
  codec_fixture b;
  auto made =
      parse_completions(json(R"({"prompt":[104,105],"store":true,"echo":true})"), b.context);
  REQUIRE(made.ok());
  auto head = *made.value().stored;
  head.model = "gone";
  const std::vector<std::string> records = {write_record(started()), write_record(piece("!")),
                                            write_record(finished())};
  const auto whole = stored_object(head, records, b.engine);
  REQUIRE(whole.ok());
  CHECK(at(json(whole.value()), "choices", 0, "text") == value("hi!"));
}

TEST_CASE("What is not to be stored has no head") {
  codec_fixture b;
  for (const auto* store : {"", R"(,"store":false)", R"(,"store":null)"}) {
    const auto chat = std::string(R"({"messages":[{"role":"user","content":"x"}])") + store + "}";
    CHECK_FALSE(parse_chat(json(chat), b.context).value().stored.has_value());
    const auto text = std::string(R"({"prompt":"x")") + store + "}";
    CHECK_FALSE(parse_completions(json(text), b.context).value().stored.has_value());
  }
}

TEST_CASE("Calls without ids of the model get the same ones each time they are read") {
  codec_fixture b;
  auto made = parse_chat(json(R"({"messages":[{"role":"user","content":"x"}],"store":true,"n":2,
      "stream":true,"tools":[{"type":"function","function":{"name":"f"}}]})"),
                         b.context);
  REQUIRE(made.ok());
  const auto call_of = [](std::int32_t choice, std::int32_t call) {
    actors::event ev = piece("", 100, choice);
    auto& begun = ev.parts.emplace_back();
    begun.kind = actors::output_part_kind::call_begin;
    begun.text = "f";
    begun.call = call;
    return ev;
  };
  std::vector<actors::event> events = {started(), call_of(0, 0), call_of(1, 0), call_of(0, 1)};
  events.push_back(finished(actors::finish_reason::tool_calls, false, 0));
  events.push_back(finished(actors::finish_reason::tool_calls, true, 1));
  std::string live;
  std::vector<std::string> records;
  for (const auto& ev : events) {
    records.push_back(write_record(ev));
    auto copy = ev;
    made.value().encoder->on_event(0, std::move(copy), live);
  }
  made.value().encoder->on_end(live);
  auto again = stored_stream(*made.value().stored, b.engine, -1);
  REQUIRE(again.ok());
  std::string read;
  for (const auto& record : records)
    again.value()->on_event(0, *read_record(record), read);
  again.value()->on_end(read);
  CHECK(read == live);
  std::set<std::string> ids;
  for (auto at = live.find("\"call_"); at != std::string::npos; at = live.find("\"call_", at + 1))
    ids.insert(live.substr(at, 32));
  CHECK(ids.size() == 3); // each call has an id of its own
  const auto whole = stored_object(*made.value().stored, records, b.engine);
  REQUIRE(whole.ok());
  for (const auto& id : ids)
    CHECK(contains(whole.value(), id));
}
