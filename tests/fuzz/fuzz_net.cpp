// Random bytes for every parser that a client of the daemon reaches: see README.md.
//
// LLVMFuzzerTestOneInput takes one input, so that clang's libFuzzer can drive it (define
// TWILL_LIBFUZZER and name the target in TWILL_FUZZ_TARGET); main() here damages seeds at random.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <unistd.h>

#include "config/base/log.hpp"
#include "net/connection/proxy_header.hpp"
#include "net/http/forwarded_for.hpp"
#include "net/http/multipart.hpp"
#include "net/http/request_reader.hpp"
#include "net/protocol/openai/chat.hpp"
#include "net/protocol/openai/completions.hpp"
#include "net/protocol/openai/responses_socket.hpp"
#include "net/protocol/stream/stream_dialect.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/net/support/codec_support.hpp"

namespace {

using namespace twill;
using namespace twill::net;

constexpr unsigned round_seconds = 20;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

struct world : testing::codec_bench {
  config::options options;
  server_context server{options, engine};
};

world& the_world() {
  static world only;
  return only;
}

/// What a reader makes of these bytes, given in pieces of this size.
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
      if (now == request_reader::progress::failed) return story + "failed";
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
  expect(read_requests(bytes, 1) == whole, "the same bytes, one by one, are the same requests");
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
  parse_multipart(bytes, "--seam--");
}

void fuzz_json(std::string_view bytes) {
  const auto parsed = parse_json(bytes);
  if (!parsed.ok()) return;
  std::string text;
  json_writer(text).add(parsed.value());
  const auto again = parse_json(text);
  expect(again.ok() && again.value() == parsed.value(),
         "what was read can be written and read again");
}

template <auto parse>
void fuzz_codec(std::string_view bytes) {
  const auto parsed = parse_json(bytes);
  if (parsed.ok() && parsed.value().as_object() != nullptr)
    static_cast<void>(parse(parsed.value(), the_world().context));
}

struct silent_host final : dialect_host {
  engine_requests::key start(actors::request) override { return ++last; }
  void cancel(engine_requests::key) override {}
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
  Dialect spoken({host, w.engine, w.options, w.responses, "tenant", "client", 1});
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

struct target {
  void (*run)(std::string_view);
  std::vector<std::string> seeds;
};

const std::map<std::string, target>& targets() {
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
  };
  return all;
}

const target* chosen() {
  static const target* const found = [] {
    const char* name = std::getenv("TWILL_FUZZ_TARGET");
    const auto at = targets().find(name == nullptr ? "" : name);
    return at == targets().end() ? nullptr : &at->second;
  }();
  return found;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (chosen() == nullptr) std::abort();
  chosen()->run({reinterpret_cast<const char*>(data), size});
  return 0;
}

#ifndef TWILL_LIBFUZZER
int main(int argc, char** argv) {
  const auto named = targets().find(argc > 1 ? argv[1] : "");
  if (argc < 3 || named == targets().end()) {
    std::fprintf(stderr, "usage: fuzz_net TARGET SECONDS [RANDOM_SEED]; targets:");
    for (const auto& entry : targets())
      std::fprintf(stderr, " %s", entry.first.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  ::setenv("TWILL_FUZZ_TARGET", argv[1], 1);
  log::configure(log::level::off);
  fuzz::generator random(argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1);
  const auto& seeds = named->second.seeds;
  for (const auto& seed : seeds)
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(seed.data()), seed.size());
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[2]));
  const std::string kept =
      "/tmp/twill-fuzz-net-" + std::string(argv[1]) + "-" + std::to_string(::getpid());
  long rounds = 0;
  for (; std::chrono::steady_clock::now() < end; ++rounds) {
    const auto& from = seeds[fuzz::draw(random, seeds.size())];
    const auto input = fuzz::mutate(random, from, seeds[fuzz::draw(random, seeds.size())]);
    if (auto* file = std::fopen(kept.c_str(), "wb")) { // found again after a crash
      std::fwrite(input.data(), 1, input.size(), file);
      std::fclose(file);
    }
    ::alarm(round_seconds);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
    ::alarm(0);
  }
  std::remove(kept.c_str());
  std::printf("%s: %ld rounds\n", argv[1], rounds);
  return 0;
}
#endif
