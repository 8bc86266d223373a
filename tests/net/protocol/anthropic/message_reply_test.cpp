// Answers of Anthropic's Messages API: whole messages, and streams that add up to them.
#include "net/protocol/anthropic/message_reply.hpp"

#include "net/protocol/anthropic/messages.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"
#include "tests/net/support/message_bodies.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::testing;
using twill::test::demand;

namespace {

using part = actors::output_part;
using kind = actors::output_part_kind;
using finish = actors::finish_reason;

actors::event said(std::vector<part> parts, std::int32_t n_tokens = 1) {
  actors::event ev;
  ev.parts = std::move(parts);
  for (std::int32_t i = 0; i < n_tokens; ++i)
    ev.tokens.push_back({{100 + i, "t", -0.5f}, {}});
  return ev;
}

actors::event ended(finish why, std::string stop_string = {}) {
  auto ev = finished(why);
  ev.stop_string = std::move(stop_string);
  return ev;
}

/// Reasoning, text and two calls, in the pieces that an engine may give.
std::vector<actors::event> answer() {
  auto first = said({{kind::reasoning, "\nhm"}});
  first.use = {9, 4, 1};
  return {started(9),
          first,
          said({{kind::reasoning, "!\n"}}),
          said({{kind::text, "\n\n"}}),
          said({{kind::text, "I look"}}),
          said({{kind::text, "."}, {kind::call_begin, "weather", 0}}),
          said({{kind::call_arguments, "{\"city\":", 0}}),
          said({{kind::call_arguments, "\"Rom\"}", 0}, {kind::call_end, "", 0}}),
          said({{kind::call_begin, "time", 1, true, "own_id"},
                {kind::call_arguments, "{}", 1},
                {kind::call_end, "", 1}}),
          ended(finish::tool_calls)};
}

std::unique_ptr<reply_encoder> encoder_of(codec_fixture& b, const std::string& members,
                                          bool stream) {
  auto made =
      parse_messages(json(R"({"max_tokens":50,"messages":[{"role":"user","content":"x"}],)" +
                          members + R"("stream":)" + (stream ? "true}" : "false}")),
                     b.context);
  if (!made.ok()) throw std::runtime_error(made.code().message);
  CHECK(made.value().stream == stream);
  return std::move(made.value().encoder);
}

std::string play(reply_encoder& encoder, std::vector<actors::event> events) {
  std::string out;
  for (auto& ev : events)
    encoder.on_event(0, std::move(ev), out);
  encoder.on_end(out);
  return out;
}

value whole(codec_fixture& b, const std::string& members, std::vector<actors::event> events) {
  return json(play(*encoder_of(b, members, false), std::move(events)));
}

/// The data of each event, whose `type` is its name.
std::vector<value> events_of(const std::string& stream) {
  std::vector<value> out;
  for (std::size_t at_line = 0; at_line < stream.size();) {
    const auto end = stream.find("\n\n", at_line);
    const auto text = stream.substr(at_line, end - at_line);
    const auto line = text.find("\ndata: ");
    demand(end != stream.npos && text.starts_with("event: ") && line != text.npos, "an event");
    out.push_back(json(text.substr(line + 7)));
    demand(at(out.back(), "type") == value(text.substr(7, line - 7)), "its name");
    at_line = end + 2;
  }
  return out;
}

std::vector<value> streamed(codec_fixture& b, const std::string& members,
                            std::vector<actors::event> events) {
  return events_of(play(*encoder_of(b, members, true), std::move(events)));
}

/// The message that a stream's events add up to, as clients do it.
value added_up(const std::vector<value>& events) {
  demand(events.size() >= 3 && at(events[0], "type") == value("message_start"), "its start");
  value_object message = *at(events[0], "message").as_object();
  value_list content;
  std::string words, input;
  bool open = false;
  const auto set = [](value_object& object, const std::string& name, value v) {
    for (auto& [key, member] : object)
      if (key == name) return void(member = std::move(v));
    object.emplace_back(name, std::move(v));
  };
  const auto change = [&](const std::string& name, value v) {
    auto block = *content.back().as_object();
    set(block, name, std::move(v));
    content.back() = std::move(block);
  };
  for (std::size_t i = 1; i < events.size(); ++i) {
    const auto& ev = events[i];
    const auto type = *at(ev, "type").as_string();
    const bool in_block = type.starts_with("content_block_");
    if (in_block) {
      const auto index = static_cast<std::int64_t>(content.size()) - (open ? 1 : 0);
      demand(at(ev, "index") == value(index), "the index of a block");
    }
    if (type == "content_block_start") {
      demand(!open, "one block at a time");
      open = true;
      content.push_back(at(ev, "content_block"));
      words.clear();
      input.clear();
    } else if (type == "content_block_delta") {
      demand(open, "a delta belongs to a block");
      const auto what = *at(ev, "delta", "type").as_string();
      if (what == "text_delta")
        change("text", words += *at(ev, "delta", "text").as_string());
      else if (what == "thinking_delta")
        change("thinking", words += *at(ev, "delta", "thinking").as_string());
      else if (what == "signature_delta")
        change("signature", at(ev, "delta", "signature"));
      else
        input += *at(ev, "delta", "partial_json").as_string();
    } else if (type == "content_block_stop") {
      demand(open, "a block ends once");
      open = false;
      if (!input.empty()) {
        call_input reader;
        demand(reader.push(input) == input, "pieces of a call begin a JSON object");
        change("input", json(reader.closed(input)));
      }
    } else if (type == "message_delta") {
      demand(!open && i + 2 == events.size(), "what comes last");
      for (const auto& [name, v] : *at(ev, "delta").as_object())
        set(message, name, v);
      set(message, "usage", at(ev, "usage"));
      if (const auto* edits = ev.find("context_management"))
        message.emplace_back("context_management", *edits);
    } else {
      demand(type == "message_stop" && i + 1 == events.size(), "the end");
    }
  }
  set(message, "content", std::move(content));
  return message;
}

/// The value without ids and signatures, which differ between two replies.
value without_ids(const value& v) {
  if (const auto* list = v.as_list()) {
    value_list out;
    for (const auto& one : *list)
      out.push_back(without_ids(one));
    return out;
  }
  if (v.as_object() == nullptr) return v;
  value_object out;
  for (const auto& [key, member] : *v.as_object())
    if (key != "id" && key != "signature") out.emplace_back(key, without_ids(member));
  return out;
}

} // namespace

TEST_CASE("A message has thoughts, text and calls in blocks") {
  codec_fixture b;
  const auto message = whole(b, "", answer());
  CHECK(at(message, "id").as_string()->starts_with("msg_"));
  CHECK(at(message, "content", 0, "signature").as_string()->starts_with("sig_"));
  CHECK(at(message, "content", 2, "id").as_string()->starts_with("toolu_"));
  CHECK(at(message, "content", 3, "id") == value("own_id"));
  CHECK(without_ids(message) == json(R"({
    "type":"message","role":"assistant","model":"test-model","content":[
      {"type":"thinking","thinking":"hm!\n"},
      {"type":"text","text":"I look."},
      {"type":"tool_use","name":"weather","input":{"city":"Rom"}},
      {"type":"tool_use","name":"time","input":{}}],
    "stop_reason":"tool_use","stop_sequence":null,
    "usage":{"input_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":4,
             "output_tokens":8,"output_tokens_details":{"thinking_tokens":2}}})"));
  CHECK(at(whole(b, R"("context_management":{"edits":[]},)", answer()), "context_management") ==
        json(R"({"applied_edits":[]})"));
}

TEST_CASE("A stream of a message is the sequence of events that clients expect") {
  codec_fixture b;
  auto encoder = encoder_of(b, "", true);
  CHECK(encoder->format().content_type == "text/event-stream; charset=utf-8");
  CHECK(encoder->format().filler == "event: ping\ndata: {\"type\":\"ping\"}\n\n");
  std::string out;
  encoder->on_event(0, started(9), out); // the prompt's tokens are known
  const auto begun = events_of(out);
  REQUIRE(begun.size() == 1);
  CHECK(without_ids(begun[0]) == json(R"({"type":"message_start","message":{
    "type":"message","role":"assistant","model":"test-model","content":[],"stop_reason":null,
    "stop_sequence":null,"usage":{"input_tokens":9,"cache_creation_input_tokens":0,
    "cache_read_input_tokens":0,"output_tokens":0,
    "output_tokens_details":{"thinking_tokens":0}}}})"));
  std::string types;
  for (const auto& ev : streamed(b, "", answer())) {
    types += *at(ev, "type").as_string();
    if (const auto* delta = ev.find("delta"); delta != nullptr && delta->find("type") != nullptr)
      types += "/" + *at(*delta, "type").as_string();
    types += " ";
  }
  CHECK(types == "message_start "
                 "content_block_start content_block_delta/thinking_delta "
                 "content_block_delta/thinking_delta content_block_delta/signature_delta "
                 "content_block_stop "
                 "content_block_start content_block_delta/text_delta "
                 "content_block_delta/text_delta content_block_stop "
                 "content_block_start content_block_delta/input_json_delta "
                 "content_block_delta/input_json_delta content_block_stop "
                 "content_block_start content_block_delta/input_json_delta content_block_stop "
                 "message_delta message_stop ");
  for (const auto* members : {"", R"("context_management":{"edits":[]},)"})
    CHECK(without_ids(added_up(streamed(b, members, answer()))) ==
          without_ids(whole(b, members, answer())));
}

TEST_CASE("Why a message ended") {
  codec_fixture b;
  const auto reason = [&](finish why, std::int32_t n_tokens, const std::string& stop_string = "") {
    const auto message =
        whole(b, "", {started(), said({{kind::text, "a"}}, n_tokens), ended(why, stop_string)});
    return *at(message, "stop_reason").as_string() + " " +
           (at(message, "stop_sequence").is_null() ? "null"
                                                   : *at(message, "stop_sequence").as_string());
  };
  CHECK(reason(finish::stop, 3) == "end_turn null");
  CHECK(reason(finish::stop, 3, "END") == "stop_sequence END");
  CHECK(reason(finish::tool_calls, 3) == "tool_use null");
  CHECK(reason(finish::length, 50) == "max_tokens null");
  CHECK(reason(finish::length, 49) == "model_context_window_exceeded null");
}

TEST_CASE("Thoughts are shown as the request wants them") {
  codec_fixture b;
  const auto content = [&](const std::string& members) {
    CHECK(without_ids(added_up(streamed(b, members, answer()))) ==
          without_ids(whole(b, members, answer())));
    return without_ids(at(whole(b, members, answer()), "content"));
  };
  CHECK(at(content(R"("thinking":{"type":"adaptive"},)"), 0) ==
        json(R"({"type":"thinking","thinking":"hm!\n"})"));
  CHECK(at(content(R"("thinking":{"type":"enabled","display":"omitted"},)"), 0) ==
        json(R"({"type":"thinking","thinking":""})"));
  for (const auto* off : {"disabled", "between_tools"})
    CHECK(at(content(R"("thinking":{"type":")" + std::string(off) + R"("},)"), 0) ==
          json(R"({"type":"text","text":"I look."})"));
}

TEST_CASE("White space alone makes no block, and the answer's own white space stays") {
  codec_fixture b;
  const auto content = [&](std::vector<std::vector<part>> pieces) {
    std::vector<actors::event> events{started()};
    for (auto& parts : pieces)
      events.push_back(said(std::move(parts)));
    events.push_back(ended(finish::stop));
    const auto message = whole(b, "", events);
    CHECK(without_ids(added_up(streamed(b, "", events))) == without_ids(message));
    return without_ids(at(message, "content"));
  };
  CHECK(content({{}}) == json("[]"));
  CHECK(content({{{kind::text, "\n "}}, {{kind::text, "\n"}}}) == json("[]"));
  CHECK(content({{{kind::reasoning, "\n\n"}}, {{kind::text, "\n\na"}}}) ==
        json(R"([{"type":"text","text":"a"}])"));
  CHECK(content({{{kind::text, " "}}, {{kind::text, "a \n"}}, {{kind::text, " b "}}}) ==
        json(R"([{"type":"text","text":" a \n b "}])"));
  CHECK(content({{{kind::text, "a"}}, {{kind::reasoning, " "}}, {{kind::text, " b"}}}) ==
        json(R"([{"type":"text","text":"a b"}])"));
  CHECK(content({{{kind::text, "\n"}}, {{kind::call_begin, "f", 0}}, {{kind::call_end, "", 0}}}) ==
        json(R"([{"type":"tool_use","name":"f","input":{}}])"));
}

TEST_CASE("With disable_parallel_tool_use the first call alone is in the message") {
  codec_fixture b;
  const std::string one = R"("tools":[{"name":"weather","input_schema":{}}],
    "tool_choice":{"type":"auto","disable_parallel_tool_use":true},)";
  const auto message = whole(b, one, answer());
  CHECK(at(message, "content").as_list()->size() == 3);
  CHECK(at(message, "content", 2, "name") == value("weather"));
  CHECK(without_ids(added_up(streamed(b, one, answer()))) == without_ids(message));
}

TEST_CASE("A call that is cut or no JSON has the members that are whole") {
  codec_fixture b;
  const auto input = [&](const std::string& arguments, bool complete = false) {
    std::vector<actors::event> events{started(), said({{kind::call_begin, "f", 0}})};
    for (const char c : arguments)
      events.push_back(said({{kind::call_arguments, std::string(1, c), 0}}));
    events.push_back(said({{kind::call_end, "", 0, complete}}));
    events.push_back(ended(finish::length));
    const auto message = whole(b, "", events);
    CHECK(without_ids(added_up(streamed(b, "", events))) == without_ids(message));
    return at(message, "content", 0, "input");
  };
  CHECK(input(R"({"a": 1, "b": "x)") == json(R"({"a":1})"));
  CHECK(input(R"({"a": [1, {"b": tr)") == json(R"({"a":[1,{}]})"));
  CHECK(input("") == json("{}"));
  CHECK(input("[1]", true) == json("{}"));
  CHECK(input(R"("text")", true) == json("{}"));
  CHECK(input("{'a': 1}", true) == json("{}"));
  CHECK(input("{\"a\": \"x\ny\"}", true) == json(R"({"a":"x\ny"})"));
}

TEST_CASE("A stream of a message that fails ends with the error") {
  codec_fixture b;
  auto encoder = encoder_of(b, "", true);
  std::string out;
  encoder->on_event(0, started(), out);
  encoder->on_error({actors::errc::queue_timed_out, "it waited too long", ""}, out);
  const auto events = events_of(out);
  REQUIRE(events.size() == 2);
  CHECK(events[1] == json(R"({"type":"error","error":{"type":"overloaded_error",
                              "message":"it waited too long"}})"));
}

TEST_CASE("Whatever an engine says, a stream of a message adds up to the whole message") {
  const auto property = [](const test::operations& sequence) {
    codec_fixture b;
    std::vector<actors::event> events{started(7)};
    bool in_call = false;
    std::int32_t call = -1;
    const auto add = [&](part one) { events.push_back(said({std::move(one)})); };
    for (const auto& op : sequence) {
      const char* const words[] = {"a", " ", "\n", " b", "c ", "\u00e9", "\n\n"};
      const char* const pieces[] = {"{\"k", "\":", "1", ",", "}", " \"v\"", "\\u0041", "\n", "["};
      switch (op.kind % 5) {
      case 0:
        if (!in_call) add({kind::text, words[op.a % std::size(words)]});
        break;
      case 1:
        if (!in_call) add({kind::reasoning, words[op.a % std::size(words)]});
        break;
      case 2:
        if (in_call) break;
        in_call = true;
        add({kind::call_begin, "f" + std::to_string(op.a % 3), ++call});
        break;
      case 3:
        if (in_call) add({kind::call_arguments, pieces[op.a % std::size(pieces)], call});
        break;
      case 4:
        if (in_call) add({kind::call_end, "", call, op.a % 2 == 0});
        in_call = false;
        break;
      }
      // For a slow client, consecutive events are merged.
      if (op.b % 3 == 0 && events.size() > 2 && !events.back().parts.empty()) {
        auto last = std::move(events.back());
        events.pop_back();
        if (!events.back().started)
          events.back().parts.push_back(std::move(last.parts.front()));
        else
          events.push_back(std::move(last));
      }
    }
    const std::size_t form = sequence.empty() ? 0 : sequence.front().c % 3;
    const char* const forms[] = {"", R"("thinking":{"type":"disabled"},)",
                                 R"("thinking":{"type":"enabled","display":"omitted"},)"};
    events.push_back(ended(finish::stop));
    const auto message = whole(b, forms[form], events);
    const auto sum = added_up(streamed(b, forms[form], events));
    demand(without_ids(sum) == without_ids(message), "the sum of a stream");
    for (const auto& block : *at(message, "content").as_list())
      if (const auto* text = block.find("text"))
        demand(text->as_string()->find_first_not_of(" \n") != std::string::npos, "a block's text");
  };
  CHECK(test::first_failure({.cases = 400, .long_cases = 40'000, .most_operations = 40},
                            property) == "");
}
