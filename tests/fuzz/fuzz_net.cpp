// Random bytes for every parser of net/ that clients of the daemon can reach: see README.md.
#include <algorithm>
#include <map>
#include <string>
#include <variant>

#include "models/checkpoint/json.hpp"
#include "net/api_keys.hpp"
#include "net/batch/batch.hpp"
#include "net/connection/proxy_header.hpp"
#include "net/http/forwarded_for.hpp"
#include "net/http/multipart.hpp"
#include "net/http/request_reader.hpp"
#include "net/http/router.hpp"
#include "net/protocol/anthropic/messages.hpp"
#include "net/protocol/openai/chat.hpp"
#include "net/protocol/openai/completions.hpp"
#include "net/protocol/openai/responses_reply.hpp"
#include "net/protocol/openai/responses_socket.hpp"
#include "net/protocol/openai/stored_responses.hpp"
#include "net/protocol/openai/tokenize.hpp"
#include "net/protocol/stream/stream_dialect.hpp"
#include "net/stored/stored_record.hpp"
#include "net/stored/stored_service.hpp"
#include "tests/fuzz/driver.hpp"
#include "tests/net/stored/hostile_files.hpp"
#include "tests/net/support/codec_support.hpp"
#include "tests/net/support/message_bodies.hpp"

namespace {

using namespace twill;
using namespace twill::net;

using fuzz::expect;

struct world : testing::codec_fixture {
  config::options options;
  server_context server{options, engine};
  stored_service stored{{engine, options.responses, [] { return std::size_t{1}; },
                         [] { return std::chrono::milliseconds(0); },
                         [](const stored_head&) -> net::result<actors::request> {
                           return fail({errc::no_such_response, "nothing goes on here", ""});
                         },
                         nullptr}};

  world() {
    server.stored = &stored;
    server.find_previous = find_previous;
  }
};

world& the_world() {
  static world only;
  return only;
}

/// Describes the requests that a reader finds in the bytes when it gets them in pieces.
std::string read_requests(std::string_view bytes, std::size_t piece) {
  request_reader reader(the_world().server);
  std::string story;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    const auto part = bytes.substr(at, piece);
    auto room = reader.input().prepare(part.size());
    std::copy(part.begin(), part.end(), static_cast<char*>(room.data()));
    reader.input().commit(part.size());
    while (reader.has_work()) {
      const auto now = reader.advance();
      // Whether the reader already refuses an unfinished head may depend on how it is cut.
      if (now == request_reader::progress::failed) return story;
      if (now == request_reader::progress::need_more) break;
      if (now == request_reader::progress::head) {
        const auto head = describe_request(reader.head());
        story += head.method + " " + head.path + "?" + head.query + " ";
        reader.accept_body(1 << 20);
      } else {
        story += std::string(reader.take().body()) + "\n";
      }
    }
  }
  return story;
}

void fuzz_http(std::string_view bytes) {
  const auto whole = read_requests(bytes, std::max<std::size_t>(bytes.size(), 1));
  // Beast 1.81 has an assertion that fails if the first four bytes of an empty chunked body come
  // one by one. Without assertions Beast reads such a body correctly, so only builds with NDEBUG
  // feed the input in pieces of one byte.
#ifdef NDEBUG
  constexpr std::size_t small = 1;
#else
  constexpr std::size_t small = 2;
#endif
  expect(read_requests(bytes, small) == whole, "the same bytes, bit by bit, are the same requests");
  expect(read_requests(bytes, 7) == whole, "the same bytes, by sevens, are the same requests");
}

void fuzz_proxy(std::string_view bytes) {
  std::size_t n = 0;
  for (;;) {
    const auto parsed = read_proxy_header(bytes.substr(0, n));
    if (parsed.now != proxy_header::state::need_more) return;
    expect(parsed.missing > 0 && parsed.missing < 8192,
           "a header that goes on asks for some bytes");
    n += parsed.missing;
    if (n > bytes.size()) return;
  }
}

void fuzz_forwarded(std::string_view bytes) {
  static const trusted_proxies proxies({"10.0.0.0/8", "::1", "fe80::/10"});
  const auto found = find_forwarded_client(bytes, proxies);
  if (found.client.has_value())
    expect(ip_address::parse(found.client->text()) == found.client,
           "an address reads as it is told");
  if (const auto network = ip_network::parse(bytes)) network->contains(ip_address());
}

void fuzz_multipart(std::string_view bytes) {
  const auto parts = parse_multipart("multipart/form-data; boundary=seam", bytes);
  if (!parts.ok()) return;
  for (const auto& part : parts.value())
    expect(part.data.empty() ||
               (part.data.data() >= bytes.data() &&
                part.data.data() + part.data.size() <= bytes.data() + bytes.size()),
           "a part lies in its body");
  static_cast<void>(parse_multipart(bytes, "--seam--"));
}

void fuzz_json(std::string_view bytes) {
  const auto parsed = parse_json(bytes);
  if (!parsed.ok()) return;
  std::string text;
  json_writer(text).add(parsed.value());
  const auto again = parse_json(text);
  expect(again.ok() && again.value() == parsed.value(),
         "what was read can be written and read again");
  const auto other = models::parse_json(bytes, "bytes");
  expect(other.ok() && other.value() == parsed.value(), "both parsers read the same");
}

/// Plays the events of whole generations to a call, and checks the reply to the client.
void answer(call made) {
  std::string out;
  for (std::size_t i = 0; i < made.requests.size(); ++i) {
    made.encoder->on_event(i, testing::started(), out);
    made.encoder->on_event(i, testing::piece("a \xF0\x9F\x98\x80\""), out);
    const bool last = i + 1 == made.requests.size();
    made.encoder->on_event(i, testing::finished(), out);
    if (last) made.encoder->on_end(out);
  }
  expect(!out.empty() && (made.stream || parse_json(out).ok()), "a reply is JSON or a stream");
}

template <auto parse>
void fuzz_codec(std::string_view bytes) {
  const auto parsed = parse_json(bytes);
  if (!parsed.ok() || parsed.value().as_object() == nullptr) return;
  auto made = parse(parsed.value(), the_world().context);
  if (made.ok()) answer(std::move(made).value());
}

template <auto reply>
void fuzz_reply(std::string_view bytes) {
  const auto parsed = parse_json(bytes);
  if (!parsed.ok() || parsed.value().as_object() == nullptr) return;
  const auto body = reply(parsed.value(), the_world().context);
  if (body.ok()) expect(parse_json(body.value()).ok(), "a reply is JSON");
}

/// Sends complete requests through the router to the functions that answer them. The routes of
/// files and batches have fuzz targets of their own.
void fuzz_route(std::string_view bytes) {
  auto& context = the_world().server;
  request_reader reader(context);
  auto room = reader.input().prepare(bytes.size());
  std::copy(bytes.begin(), bytes.end(), static_cast<char*>(room.data()));
  reader.input().commit(bytes.size());
  std::optional<admission> admitted;
  while (reader.has_work()) {
    const auto now = reader.advance();
    if (now == request_reader::progress::failed || now == request_reader::progress::need_more)
      return;
    if (now == request_reader::progress::head) {
      const auto head = describe_request(reader.head());
      static_cast<void>(admit_websocket(head, context));
      static_cast<void>(readable_by(head, context));
      auto verdict = admit(head, context);
      admitted.reset();
      if (auto* taken = std::get_if<admission>(&verdict)) admitted = std::move(*taken);
      reader.accept_body(1 << 20);
      continue;
    }
    auto message = reader.take();
    if (!admitted.has_value()) continue;
    const std::string_view path = admitted->target->path;
    if (path.starts_with("/v1/files") || path.starts_with("/v1/batches")) continue;
    auto request = describe_request(message);
    request.body = std::move(message.body());
    auto given = respond(*admitted, std::move(request), context);
    if (auto* slow = std::get_if<slow_reply>(&given)) given = slow->run();
    if (auto* slow = std::get_if<slow_call>(&given))
      given = std::visit([](auto&& made) { return http_answer(std::move(made)); }, slow->run());
    if (auto* made = std::get_if<call>(&given)) answer(std::move(*made));
  }
}

/// Records of a stored response, each after one byte that says how long it is.
void fuzz_records(std::string_view bytes) {
  std::vector<std::string> records;
  while (!bytes.empty()) {
    const auto n = std::min<std::size_t>(static_cast<unsigned char>(bytes[0]), bytes.size() - 1);
    records.emplace_back(bytes.substr(1, n));
    bytes.remove_prefix(1 + n);
    if (const auto ev = read_record(records.back())) {
      const auto again = write_record(*ev);
      const auto back = read_record(again);
      expect(back.has_value() && write_record(*back) == again, "what was read is written and read");
    }
  }
  static_cast<void>(read_drawn(records, 2));
  auto& w = the_world();
  auto asked = parse_responses(testing::json(R"({"input":"x","background":true})"), w.context);
  const auto turn = stored_turn(*asked.value().stored, w.engine);
  expect(parse_json(replay_response(turn.value(), records).object()).ok(), "the object is JSON");
  static_cast<void>(remember_stored(turn.value(), records));
}

/// The bytes are the input file of a batch, in which each line is a request.
void fuzz_batch(std::string_view bytes) {
  for (std::size_t begin = 0; begin < bytes.size();) {
    const auto end = std::min(bytes.find('\n', begin), bytes.size());
    const auto parsed = parse_batch_line(bytes.substr(begin, end - begin), "/v1/completions");
    if (const auto* line = std::get_if<batch_line>(&parsed)) {
      expect(!line->custom_id.empty(), "a line has an id");
      expect(parse_json(reply_line(line->custom_id, 200, "{}")).ok(), "its reply is JSON");
      expect(parse_json(unanswered_line(line->custom_id, "c", "m")).ok(), "its fault is JSON");
      auto made = parse_completions(line->body, the_world().context);
      if (made.ok()) answer(std::move(made).value());
    }
    begin = end + 1;
  }
}

void fuzz_subprotocols(std::string_view bytes) {
  const auto inside = [&](std::string_view part) {
    return part.empty() || (part.data() >= bytes.data() &&
                            part.data() + part.size() <= bytes.data() + bytes.size());
  };
  const auto offered = read_subprotocols(bytes);
  expect(inside(offered.key) && inside(offered.named) && inside(bearer_key(bytes)),
         "a key is part of its header");
}

/// Files of stored responses, as they are and with checksums that fit.
void fuzz_stored_journal(std::string_view bytes) {
  const std::string as_given(bytes);
  for (const auto& file : {as_given, testing::with_right_sums(as_given)})
    if (const char* broken = testing::broken_promise(file)) expect(false, broken);
}

struct silent_host final : dialect_host {
  engine_requests::key start(actors::request) override { return ++last; }
  net::result<engine_requests::key> start_stored(stored_head, actors::request request) override {
    return start(std::move(request));
  }
  void find_stored(const std::string&, const std::string&, found_stored then) override {
    then(std::optional<followed_response>());
  }
  engine_requests::key follow(std::shared_ptr<event_source>) override { return ++last; }
  void cancel(engine_requests::key) override {}
  bool end(engine_requests::key which) override {
    cancel(which);
    return false;
  }
  void pause(engine_requests::key) override {}
  void resume(engine_requests::key) override {}
  bool output_full() const override { return false; }
  std::function<void()> waker() override {
    return [] {};
  }
  engine_requests::key last = 0;
};

/// Lines are messages; each request that starts gets some events.
template <class Dialect>
void fuzz_dialect(std::string_view bytes) {
  auto& w = the_world();
  silent_host host;
  Dialect spoken(dialect_scope{host,
                               w.engine,
                               w.options,
                               w.server.current,
                               w.responses,
                               w.server.find_previous,
                               {"tenant", {}},
                               "client",
                               1});
  engine_requests::key seen = 0;
  for (std::size_t begin = 0; begin < bytes.size();) {
    const auto end = std::min(bytes.find('\n', begin), bytes.size());
    spoken.on_message(bytes.substr(begin, end - begin));
    begin = end + 1;
    for (; seen < host.last; ++seen) {
      spoken.on_event(seen + 1, testing::started());
      spoken.on_event(seen + 1, testing::piece("a \xF0\x9F\x98\x80"));
      if (seen % 2 == 0) spoken.on_event(seen + 1, testing::finished());
    }
    std::string frame;
    while (spoken.next_frame(frame))
      expect(parse_json(frame).ok(), "every frame is JSON");
  }
  std::size_t left = spoken.waiting_bytes();
  expect(left < (1u << 30), "the count of waiting bytes never falls below zero");
}

} // namespace

const std::map<std::string, fuzz::target>& fuzz::targets() {
  static const std::string tools =
      R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}])";
  static const std::map<std::string, target> all{
      {"http",
       {fuzz_http,
        {"GET /v1/models?a=b%20c HTTP/1.1\r\nHost: [::1]:80\r\nX-Request-Id: x\r\n\r\n",
         "POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhelloGET / "
         "HTTP/1.1\r\n"
         "Host: h\r\n\r\n",
         "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
         "chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y"
         "\r\n\r\n",
         "POST / HTTP/1.0\r\nTransfer-Encoding: identity\r\nContent-Length: 3\r\n\r\nabc"}}},
      {"proxy",
       {fuzz_proxy,
        {"PROXY TCP4 203.0.113.7 10.0.0.1 12345 8080\r\n", "PROXY TCP6 ::1 ::2 1 2\r\n",
         "PROXY UNKNOWN\r\n",
         std::string(
             "\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c\x01\x02\x03\x04\x05\x06\x07\x08\x00\x50\x01"
             "\xbb",
             28)}}},
      {"forwarded", {fuzz_forwarded, {"1.2.3.4, [::1]:80, 10.0.0.1", "2001:db8::/32", "a, b"}}},
      {"multipart",
       {fuzz_multipart,
        {"--seam\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--seam\r\n"
         "Content-Disposition: form-data; name=\"file\"; "
         "filename=\"a\\\"b\"\r\n\r\nx\r\n--seam--\r\n",
         "multipart/form-data; boundary=\"seam\""}}},
      {"json",
       {fuzz_json,
        {R"({"a":[1,-2.5e300,true,null,"\ud83d\ude00\u0000"],"b":{"":{}}})", "[[[[[[[[]]]]]]]]",
         "18446744073709551615"}}},
      {"completions",
       {fuzz_codec<parse_completions>,
        {R"({"prompt":["a",[1,2]],"max_tokens":5,"n":2,"stop":["x"],"logit_bias":{"5":1}})",
         R"({"prompt":[[1,2],[3]],"stream":true,"stream_options":{"include_usage":true},"echo":true})"}}},
      {"chat",
       {fuzz_codec<parse_chat>,
        {R"({"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"seed":1,)" +
             tools + "}",
         R"({"messages":[{"role":"assistant","content":null,"tool_calls":[]},{"role":"tool",)"
         R"("content":"x","tool_call_id":"1"}],"top_logprobs":2,"logprobs":true})"}}},
      {"responses_body",
       {fuzz_codec<parse_responses>,
        {R"({"input":"x","instructions":"y","max_output_tokens":5,"metadata":{"a":"b"},)"
         R"("text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}}}})",
         R"({"input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]},)"
         R"({"type":"function_call","call_id":"c","name":"f","arguments":"{}"},)"
         R"({"type":"function_call_output","call_id":"c","output":"1"}],"stream":true,)" +
             tools + "}"}}},
      {"forms",
       {fuzz_codec<parse_chat>,
        {R"({"messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema",)"
         R"("json_schema":{"name":"n","strict":true,"schema":{"type":"integer"}}}})",
         R"({"messages":[{"role":"user","content":"x"}],"guided_choice":["a","b"],"top_k":3,)"
         R"("structured_outputs":{"regex":"a+"},"bad_words":["c"],"min_tokens":2})",
         R"({"messages":[{"role":"user","content":"x"}],"grammar":"root ::= \"a\"",)"
         R"("repetition_penalty":1.1,"stop_token_ids":[2],"tool_choice":{"type":"function",)"
         R"("function":{"name":"f"}},)" +
             tools + "}"}}},
      {"anthropic",
       {[](std::string_view bytes) {
          fuzz_codec<parse_messages>(bytes);
          fuzz_reply<count_tokens_body>(bytes);
        },
        {testing::short_message, testing::full_message, testing::begun_message}}},
      {"records", {fuzz_records, {[] {
                     std::string seed;
                     for (const auto& ev :
                          {testing::started(), testing::piece("a"), testing::finished(),
                           testing::failed(actors::errc::cancelled, "no")}) {
                       const auto record = write_record(ev);
                       seed += static_cast<char>(record.size()) + record;
                     }
                     return seed;
                   }()}}},
      {"tokenize",
       {fuzz_reply<tokenize_body>,
        {R"({"prompt":"x","add_special_tokens":true})",
         R"({"messages":[{"role":"user","content":"x"}],"return_token_strs":true})",
         R"({"content":"x","with_pieces":true,"parse_special":false})"}}},
      {"detokenize", {fuzz_reply<detokenize_body>, {R"({"tokens":[1,2,300]})"}}},
      {"route",
       {fuzz_route,
        {"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
         "k\r\nContent-Length: 45\r\n\r\n{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}",
         "OPTIONS /v1/models HTTP/1.1\r\nHost: 127.0.0.1:1\r\nOrigin: "
         "http://127.0.0.1:1\r\nAccess-Control-Request-Headers: x-a\r\n\r\n"
         "GET /v1/models/a%2fb?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
         "GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: "
         "upgrade\r\nSec-WebSocket-Protocol: a, openai-insecure-api-key.b\r\n\r\n",
         "GET /page/chat.js HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: \"x\", W/\"y\"\r\n\r\n"
         "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
         "14\r\n\r\n{\"prompt\":\"x\"}"}}},
      {"batch",
       {fuzz_batch,
        {R"({"custom_id":"a","method":"POST","url":"/v1/completions","body":{"prompt":"x"}})"
         "\n\n"
         R"({"custom_id":"b","method":"POST","url":"/v1/completions","body":{"prompt":[1],"n":2}})"
         "\n"}}},
      {"subprotocols",
       {fuzz_subprotocols,
        {"twill, openai-insecure-api-key.KEY, other", "Bearer  twk_abc", "bearer x"}}},
      {"stream",
       {fuzz_dialect<stream_dialect>,
        {"{\"op\":\"submit\",\"id\":1,\"prompt\":\"x\",\"credit\":1}\n{\"op\":\"credit\",\"id\":1,"
         "\"n\":2}\n"
         "{\"op\":\"cancel\",\"id\":1}\n{\"op\":\"ping\",\"nonce\":7}\n",
         "{\"op\":\"submit\",\"id\":\"a\",\"tokens\":[1,2],\"logprobs\":2}\n{\"op\":\"submit\","
         "\"id\":\"a\","
         "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"n\":2}\n"}}},
      {"responses",
       {fuzz_dialect<responses_socket>,
        {"{\"type\":\"response.create\",\"stream_id\":\"a\",\"input\":\"x\"}\n{\"type\":\"response."
         "create\","
         "\"stream_id\":\"a\",\"input\":[{\"role\":\"user\",\"content\":\"y\"}],\"store\":false}\n"
         "{\"type\":\"response.cancel\",\"stream_id\":\"a\"}\n",
         "{\"type\":\"response.create\",\"generate\":false,\"input\":\"x\"}\n"}}},
      {"stored_journal",
       {fuzz_stored_journal, {testing::sample_journal(), testing::sample_response()}}},
  };
  return all;
}
