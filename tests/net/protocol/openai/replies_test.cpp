// Replies in the formats of the OpenAI API, as whole bodies and as server-sent events, written
// from scripted engine events.
#include "net/error_map.hpp"
#include "net/protocol/openai/chat.hpp"
#include "net/protocol/openai/completions.hpp"
#include "net/protocol/openai/models.hpp"
#include "net/protocol/openai/responses_reply.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::testing;

namespace {

/// The data of each server-sent event, parsed; the framing is checked on the way.
std::vector<value> events_of(const std::string& stream, bool done_mark = true) {
  std::vector<value> out;
  std::size_t start = 0;
  bool done = false;
  while (start < stream.size()) {
    const auto end = stream.find("\n\n", start);
    REQUIRE(end != std::string::npos);
    auto block = stream.substr(start, end - start);
    start = end + 2;
    if (block.starts_with("event: ")) {
      const auto line = block.find('\n');
      const auto type = block.substr(7, line - 7);
      block = block.substr(line + 1);
      CHECK(contains(block, "\"type\":\"" + type + "\""));
    }
    REQUIRE(block.starts_with("data: "));
    REQUIRE(!done);
    if (block == "data: [DONE]")
      done = true;
    else
      out.push_back(json(block.substr(6)));
  }
  CHECK(done == done_mark);
  return out;
}

call make(net::result<call> made) {
  if (!made.ok()) throw std::runtime_error(made.code().message);
  return std::move(made).value();
}

std::string play(call& c, std::vector<actors::event> events, std::size_t request = 0) {
  std::string out;
  for (auto& ev : events)
    c.encoder->on_event(request, std::move(ev), out);
  c.encoder->on_end(out);
  return out;
}

} // namespace

TEST_CASE("A whole chat reply has OpenAI's shape") {
  codec_fixture b;
  auto c = make(parse_chat(json(R"({"messages":[{"role":"user","content":"x"}],"logprobs":true,
                                   "top_logprobs":2,"return_token_ids":true})"),
                           b.context));
  auto first = started();
  first.prompt_ids = {7, 8, 9};
  const auto body = json(play(c, {first, piece("Hel", 5), piece("lo", 6), finished()}));
  CHECK(at(body, "object") == value("chat.completion"));
  CHECK(at(body, "model") == value("test-model"));
  CHECK(at(body, "choices", 0, "message", "role") == value("assistant"));
  CHECK(at(body, "choices", 0, "message", "content") == value("Hello"));
  CHECK(at(body, "choices", 0, "finish_reason") == value("stop"));
  CHECK(at(body, "choices", 0, "stop_reason").is_null());
  CHECK(at(body, "choices", 0, "logprobs", "content", 1, "token") == value("lo"));
  CHECK(at(body, "choices", 0, "logprobs", "content", 0, "logprob") == value(-0.25));
  CHECK(at(body, "choices", 0, "logprobs", "content", 0, "bytes").as_list()->size() == 3);
  CHECK(at(body, "choices", 0, "logprobs", "content", 0, "top_logprobs").as_list()->size() == 2);
  CHECK(at(body, "choices", 0, "token_ids") == json("[5,6]"));
  CHECK(at(body, "prompt_token_ids") == json("[7,8,9]"));
  CHECK(at(body, "usage", "prompt_tokens") == value(3));
  CHECK(at(body, "usage", "completion_tokens") == value(2));
  CHECK(at(body, "usage", "total_tokens") == value(5));
}

TEST_CASE("A chat stream starts with the role, ends with a reason, usage and [DONE]") {
  codec_fixture b;
  auto c = make(parse_chat(json(R"({"messages":[{"role":"user","content":"x"}],"stream":true,
                                   "stream_options":{"include_usage":true}})"),
                           b.context));
  CHECK(c.stream);
  const auto events = events_of(
      play(c, {started(), piece("a"), piece("b"), finished(actors::finish_reason::length)}));
  REQUIRE(events.size() == 4);
  for (const auto& ev : events) {
    CHECK(at(ev, "object") == value("chat.completion.chunk"));
    CHECK(at(ev, "id") == at(events[0], "id"));
  }
  CHECK(at(events[0], "choices", 0, "delta") == json(R"({"role":"assistant","content":"a"})"));
  CHECK(at(events[0], "choices", 0, "finish_reason").is_null());
  CHECK(at(events[1], "choices", 0, "delta") == json(R"({"content":"b"})"));
  CHECK(at(events[2], "choices", 0, "delta") == json("{}"));
  CHECK(at(events[2], "choices", 0, "finish_reason") == value("length"));
  CHECK(at(events[3], "choices") == json("[]"));
  CHECK(at(events[3], "usage", "completion_tokens") == value(2));
}

TEST_CASE("Of a stream with usage every chunk has it: null, and in the last one what was used") {
  codec_fixture b;
  const auto stream = [&](bool chat, const std::string& options) {
    const auto body =
        json(R"({"messages":[{"role":"user","content":"x"}],"prompt":"x","stream":true)" + options +
             "}");
    auto c = make(chat ? parse_chat(body, b.context) : parse_completions(body, b.context));
    return events_of(play(c, {started(), piece("a"), finished()}));
  };
  for (const bool chat : {true, false}) {
    CAPTURE(chat);
    const auto with = stream(chat, R"(,"stream_options":{"include_usage":true})");
    REQUIRE(with.size() == 3);
    CHECK(at(with[0], "usage").is_null());
    CHECK(at(with[1], "usage").is_null());
    CHECK(at(with[2], "usage", "completion_tokens") == value(1));
    for (const auto* options : {"", R"(,"stream_options":{"include_usage":false})"})
      for (const auto& ev : stream(chat, options))
        CHECK(ev.find("usage") == nullptr);
  }
}

TEST_CASE("A token that completes no character makes no chunk unless ids are wanted") {
  codec_fixture b;
  for (const bool ids : {false, true}) {
    auto c = make(
        parse_completions(json(std::string(R"({"prompt":"x","stream":true,"return_token_ids":)") +
                               (ids ? "true}" : "false}")),
                          b.context));
    auto partial = piece("x");
    partial.text.clear();
    const auto events = events_of(play(c, {started(), piece("a"), partial, finished()}));
    CHECK(events.size() == (ids ? 3u : 2u));
  }
}

TEST_CASE("Completions: several prompts, n, echo, logprobs, continuous usage") {
  codec_fixture b;
  auto whole =
      make(parse_completions(json(R"({"prompt":["P","Q"],"n":2,"echo":true})"), b.context));
  REQUIRE(whole.requests.size() == 2);
  std::string out;
  for (std::size_t request = 0; request < 2; ++request)
    for (std::int32_t choice = 0; choice < 2; ++choice) {
      whole.encoder->on_event(request, piece("c" + std::to_string(choice), 100, choice), out);
      whole.encoder->on_event(request, finished(actors::finish_reason::stop, choice == 1, choice),
                              out);
    }
  CHECK(out.empty());
  whole.encoder->on_end(out);
  const auto body = json(out);
  CHECK(at(body, "choices").as_list()->size() == 4);
  CHECK(at(body, "choices", 1, "text") == value("Pc1"));
  CHECK(at(body, "choices", 2, "text") == value("Qc0"));
  CHECK(at(body, "choices", 3, "index") == value(3));

  auto logged = make(parse_completions(
      json(R"({"prompt":"x","logprobs":1,"return_tokens_as_token_ids":true})"), b.context));
  const auto with = json(play(logged, {started(), piece("é", 5), piece("b", 6), finished()}));
  CHECK(at(with, "choices", 0, "logprobs", "tokens") == json(R"(["token_id:5","token_id:6"])"));
  CHECK(at(with, "choices", 0, "logprobs", "text_offset") == json("[0,1]"));
  CHECK(at(with, "choices", 0, "logprobs", "top_logprobs", 0, "token_id:5") == value(-0.25));

  auto counted = make(parse_completions(json(R"({"prompt":[65,66],"echo":true,"stream":true,
      "stream_options":{"continuous_usage_stats":true}})"),
                                        b.context));
  const auto events = events_of(play(counted, {started(2), piece("x"), piece("y"), finished()}));
  CHECK(at(events[0], "choices", 0, "text") == value("ABx"));
  CHECK(at(events[0], "usage", "completion_tokens") == value(1));
  CHECK(at(events[1], "choices", 0, "text") == value("y"));
  CHECK(at(events[1], "usage", "completion_tokens") == value(2));
}

TEST_CASE("The stop reason is the string, or the id when it was asked for") {
  codec_fixture b;
  auto end = finished();
  end.stop_string = "###";
  auto c = make(parse_completions(json(R"({"prompt":"x","stop":"###"})"), b.context));
  CHECK(at(json(play(c, {end})), "choices", 0, "stop_reason") == value("###"));
  end = finished();
  end.stop_token = 5;
  auto d = make(parse_completions(json(R"({"prompt":"x","stop_token_ids":[5]})"), b.context));
  CHECK(at(json(play(d, {end})), "choices", 0, "stop_reason") == value(5));
  end.stop_token = 2; // the model's own end id
  auto e = make(parse_completions(json(R"({"prompt":"x","stop_token_ids":[5]})"), b.context));
  CHECK(at(json(play(e, {end})), "choices", 0, "stop_reason").is_null());
}

TEST_CASE("A stream that fails says so in an event and ends") {
  codec_fixture b;
  auto c = make(
      parse_chat(json(R"({"messages":[{"role":"user","content":"x"}],"stream":true})"), b.context));
  std::string out;
  c.encoder->on_event(0, piece("a"), out);
  c.encoder->on_error({actors::errc::executor_failed, "the step failed", ""}, out);
  const auto events = events_of(out);
  CHECK(at(events[1], "error", "message") == value("the step failed"));
  CHECK(at(events[1], "error", "type") == value("server_error"));
}

TEST_CASE("A Responses stream has the typed events in order, numbered from 0") {
  codec_fixture b;
  auto c = make(
      parse_responses(json(R"({"input":"hi","stream":true,"metadata":{"k":"v"}})"), b.context));
  const std::vector<actors::event> played{started(), piece("He"), piece("y"), finished()};
  REQUIRE(c.stored.has_value());
  b.store(*c.stored, played);
  const auto events = events_of(play(c, played), false);
  const std::vector<std::string> expected = {
      "response.created",           "response.in_progress",
      "response.output_item.added", "response.content_part.added",
      "response.output_text.delta", "response.output_text.delta",
      "response.output_text.done",  "response.content_part.done",
      "response.output_item.done",  "response.completed"};
  REQUIRE(events.size() == expected.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    CHECK(at(events[i], "type") == value(expected[i]));
    CHECK(at(events[i], "sequence_number") == value(static_cast<int>(i)));
  }
  CHECK(at(events[0], "response", "status") == value("in_progress"));
  CHECK(at(events[0], "response", "output") == json("[]"));
  CHECK(at(events[5], "delta") == value("y"));
  CHECK(at(events[6], "text") == value("Hey"));
  const auto& done = at(events[9], "response");
  CHECK(at(done, "status") == value("completed"));
  CHECK(at(done, "output", 0, "content", 0, "text") == value("Hey"));
  CHECK(at(done, "usage", "input_tokens") == value(3));
  CHECK(at(done, "usage", "output_tokens") == value(2));
  CHECK(at(done, "metadata", "k") == value("v"));

  const auto& id = *at(done, "id").as_string();
  auto next = make(
      parse_responses(json(R"({"input":"more","previous_response_id":")" + id + "\"}"), b.context));
  const auto& chat = std::get<actors::chat_prompt>(next.requests[0].prompt);
  CHECK(chat.messages ==
        json(R"([{"role":"user","content":"hi"},{"role":"assistant","content":"Hey"},
                                  {"role":"user","content":"more"}])"));
  const std::string other_tenant = "other tenant";
  const codec_context other{b.model,         b.limits,     b.engine,
                            b.find_previous, other_tenant, b.server_name};
  CHECK(!parse_responses(json(R"({"input":"more","previous_response_id":")" + id + "\"}"), other)
             .ok());
}

TEST_CASE("Replies of a server with a name carry it in their ids") {
  codec_fixture b;
  b.server_name = "gpu-1";
  const auto check = [](call made, const std::string& prefix) {
    const auto id = *at(json(play(made, {started(), finished()})), "id").as_string();
    INFO(id);
    CHECK(id.starts_with(prefix + "gpu-1."));
    CHECK(id.size() == prefix.size() + 6 + 24);
  };
  check(make(parse_chat(json(R"({"messages":[{"role":"user","content":"x"}]})"), b.context)),
        "chatcmpl-");
  check(make(parse_completions(json(R"({"prompt":"x"})"), b.context)), "cmpl-");
  check(make(parse_responses(json(R"({"input":"x"})"), b.context)), "resp_");
}

TEST_CASE("A cut Responses reply is incomplete; with store false it is not remembered") {
  codec_fixture b;
  auto c = make(parse_responses(json(R"({"input":"hi","store":false})"), b.context));
  const auto body = json(play(c, {started(), piece("a"), finished(actors::finish_reason::length)}));
  CHECK(at(body, "status") == value("incomplete"));
  CHECK(at(body, "incomplete_details", "reason") == value("max_output_tokens"));
  CHECK(b.responses.held_bytes() == 0);
}

TEST_CASE("A Responses stream that fails ends with response.failed") {
  codec_fixture b;
  auto c = make(parse_responses(json(R"({"input":"hi","stream":true})"), b.context));
  std::string out;
  c.encoder->on_event(0, started(), out);
  c.encoder->on_error({actors::errc::timed_out, "too late", ""}, out);
  const auto events = events_of(out, false);
  CHECK(at(events.back(), "type") == value("response.failed"));
  CHECK(at(events.back(), "response", "status") == value("failed"));
  CHECK(at(events.back(), "response", "error", "message") == value("too late"));
}

TEST_CASE("Models are listed as benchmark tools expect them") {
  codec_fixture b;
  const auto body = json(models_body(std::vector{b.model}));
  CHECK(at(body, "object") == value("list"));
  CHECK(at(body, "data", 0, "id") == value("test-model"));
  CHECK(at(body, "data", 0, "object") == value("model"));
  CHECK(at(body, "data", 0, "root") == value("test-model")); // not the path of the model's file
  CHECK(at(body, "data", 0, "max_model_len") == value(4096));
}
