// Stored chat completions and completions over HTTP: ids of events, continued reading, and
// deletion.
#include "net/api_keys.hpp"
#include "net/http/repeated_body.hpp"
#include "tests/catch.hpp"
#include "tests/net/stored/stored_support.hpp"
#include "tests/net/support/codec_support.hpp"
#include "tests/net/support/running_server.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::testing;

namespace {

struct route {
  std::string path, fields;
  std::string body(const std::string& more) const { return "{" + fields + more + "}"; }
};

const std::vector<route> routes = {
    {"/v1/chat/completions", R"("messages":[{"role":"user","content":"hi"}])"},
    {"/v1/completions", R"("prompt":"hi")"},
};

/// The ids of a stream's events, in order, from a body or from what came over the socket.
std::vector<std::string> event_ids(const std::string& stream) {
  const std::string mark = "\nid: ";
  const auto text = "\n" + stream;
  std::vector<std::string> ids;
  for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    const auto begin = at + mark.size();
    ids.push_back(text.substr(begin, text.find('\n', begin) - begin));
  }
  return ids;
}

/// The data of the event with this id.
std::string data_of(const std::string& stream, const std::string& id) {
  const auto mark = "id: " + id + "\n";
  const auto begin = stream.find(mark) + mark.size();
  return stream.substr(begin, stream.find('\n', begin) - begin);
}

std::string response_of(const std::string& event_id) {
  return event_id.substr(0, event_id.rfind(':'));
}

/// The id in a reply, whole or streamed.
std::string id_in(const std::string& reply) {
  const auto begin = reply.find("\"id\":\"") + 6;
  return reply.substr(begin, reply.find('"', begin) - begin);
}

std::string last_event(const std::string& id) {
  return "Last-Event-ID: " + id + "\r\n";
}

http_result remove(client& c, const std::string& path) {
  c.send("DELETE " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  return c.read_reply();
}

/// A request for a stored stream that does not end by itself while a test runs. max_tokens is set,
/// because a completion has only 16 tokens without it.
const char* const kept_stream = R"(,"stream":true,"store":true,"max_tokens":4000)";

script endless_steps() {
  script s;
  s.repeat = 1'000'000;
  s.step = 1ms;
  return s;
}

} // namespace

TEST_CASE("A stored stream has an id for each event and is read on from any of them") {
  for (const auto& at : routes)
    for (const std::string more :
         {"", R"(,"n":3,"logprobs":1)", R"(,"stream_options":{"include_usage":true})"}) {
      const bool chat_scores = at.path == "/v1/chat/completions" && contains(more, "logprobs");
      const auto body =
          at.body(R"(,"stream":true,"store":true)" +
                  (chat_scores ? R"(,"n":3,"logprobs":true,"top_logprobs":1)" : more));
      running_server s;
      client c(s.port());
      const auto live = c.post(at.path, body);
      REQUIRE(live.status == 200);
      const auto ids = event_ids(live.body);
      REQUIRE(ids.size() > 3);
      const auto id = response_of(ids.front());
      CHECK(contains(live.body, "\"id\":\"" + id + "\""));
      CHECK(live.body.ends_with("data: [DONE]\n\n"));
      for (std::size_t i = 0; i < ids.size(); ++i)
        CHECK(ids[i] == id + ":" + std::to_string(i));
      CHECK(c.get(at.path + "/" + id + "?stream=true").body == live.body);
      for (std::size_t i = 0; i < ids.size(); ++i) {
        const auto mark = "id: " + ids[i] + "\n";
        const auto behind = live.body.substr(live.body.find("\n\n", live.body.find(mark)) + 2);
        // The client repeats its request, asks for a number, and reconnects as a browser does.
        CHECK(c.post(at.path, body, last_event(ids[i])).body == behind);
        const auto number = std::to_string(i);
        const auto by_number = at.path + "/" + id + "?stream=true&starting_after=";
        CHECK(c.get(by_number + number).body == behind);
        CHECK(c.get(by_number + "0", last_event(ids[i])).body == behind);
      }
      CHECK(s.engine.submitted().size() == 1);
    }
}

TEST_CASE("A stored completion is read whole, and deleted") {
  for (const auto& at : routes) {
    running_server s;
    client c(s.port());
    // The body has fields of a response, but the completion must not be taken for one.
    const auto first = c.post(at.path, at.body(R"(,"store":true,"n":2,"input":"x")"));
    REQUIRE(first.status == 200);
    const auto id = id_in(first.body);
    CHECK(c.get(at.path + "/" + id).body == first.body);
    const auto streamed = c.post(at.path, at.body(R"(,"store":true,"stream":true)"));
    const auto other = response_of(event_ids(streamed.body).front());
    const auto whole = json(c.get(at.path + "/" + other).body);
    CHECK(testing::at(whole, "choices", 0, "finish_reason") == value("stop"));
    CHECK(testing::at(whole, "usage", "completion_tokens") == value(std::int64_t{3}));
    // A completion is found by its own path alone, and no response can continue a completion.
    for (const auto* elsewhere : {"/v1/responses", "/v1/completions", "/v1/chat/completions"})
      if (elsewhere != at.path) {
        CHECK(c.get(elsewhere + ("/" + id)).status == 404);
        CHECK(c.get(elsewhere + ("/" + id) + "?stream=true").status == 404);
        CHECK(remove(c, elsewhere + ("/" + id)).status == 404);
        CHECK(c.post(elsewhere + ("/" + id) + "/cancel", "").status == 404);
      }
    CHECK(c.post("/v1/responses", R"({"input":"x","previous_response_id":")" + id + "\"}").status ==
          400);
    const auto removed = remove(c, at.path + "/" + id);
    CHECK(testing::at(json(removed.body), "deleted") == value(true));
    CHECK(c.get(at.path + "/" + id).status == 404);
    CHECK(remove(c, at.path + "/" + id).status == 404);
    const auto unstored = c.post(at.path, at.body(R"(,"stream":true)"));
    CHECK(event_ids(unstored.body).empty());
    CHECK(c.get(at.path + "/" + id_in(unstored.body)).status == 404);
  }
}

TEST_CASE("A client that left is gone on with within the grace, and cancelled after it") {
  for (const auto& at : routes) {
    config::options all;
    SECTION("with grace " + at.path) {
      all.responses.grace = 60s;
      running_server s(endless_steps(), all);
      const auto body = at.body(R"(,"stream":true,"store":true,"max_tokens":200)");
      std::string received;
      {
        client reader(s.port());
        reader.send(post_text(at.path, body));
        received = reader.read_until(" world");
        reader.reset();
      }
      const auto ids = event_ids(received);
      client c(s.port());
      const auto rest = c.post(at.path, body, last_event(ids.front())).body;
      CHECK(event_ids(rest).front() == response_of(ids.front()) + ":1");
      CHECK(rest.ends_with("data: [DONE]\n\n"));
      CHECK(contains(rest, R"("finish_reason":"length")"));
      CHECK(s.engine.submitted().size() == 1);
    }
    SECTION("without it " + at.path) {
      running_server s(endless_steps(), all);
      client c(s.port());
      std::string received;
      {
        client reader(s.port());
        reader.send(post_text(at.path, at.body(kept_stream)));
        received = reader.read_until(" world");
        reader.reset();
      }
      CHECK(s.engine.wait_cancelled(1));
      const auto id = response_of(event_ids(received).front());
      const auto stream = c.get(at.path + "/" + id + "?stream=true").body;
      CHECK(contains(stream, R"("code":"cancelled")"));
      // The output before the end of the request can still be read.
      const auto whole = json(c.get(at.path + "/" + id).body);
      CHECK(testing::at(whole, "choices", 0, "finish_reason").is_null());
    }
  }
}

TEST_CASE("A running completion is cancelled by its id") {
  for (const auto& at : routes) {
    running_server s(config::server_options{}, endless_steps());
    client reader(s.port()), c(s.port());
    reader.send(post_text(at.path, at.body(kept_stream)));
    const auto received = event_ids(reader.read_until(" world"));
    const auto id = response_of(received.front());
    CHECK(c.get(at.path + "/" + id).status == 409); // the completion has not ended
    const auto cancelled = c.post(at.path + "/" + id + "/cancel", "");
    CHECK(cancelled.status == 200);
    CHECK(s.engine.wait_cancelled(1));
    CHECK(contains(reader.read_until("[DONE]"), R"("code":"cancelled")"));
    // Readers that have all events and readers that have none both get the end in the stream.
    for (const auto* last : {"0", "100000"}) {
      const auto rest = c.get(at.path + "/" + id + "?stream=true&starting_after=" + last);
      CHECK(rest.status == 200);
      CHECK(rest.body.ends_with("data: [DONE]\n\n"));
      CHECK(contains(rest.body, R"("code":"cancelled")"));
    }
  }
}

TEST_CASE("What is too large to be sent whole is read as a stream") {
  config::options all;
  all.server.max_output_bytes = 64 * 1024;
  script many;
  many.repeat = 300;
  many.step = 0us;
  running_server s(many, all);
  client c(s.port());
  for (const auto& at : routes) {
    const auto received =
        c.post(at.path, at.body(R"(,"stream":true,"store":true,"max_tokens":900)"));
    const auto id = response_of(event_ids(received.body).front());
    const auto whole = c.get(at.path + "/" + id);
    CHECK(whole.status == 400);
    CHECK(contains(whole.body, "read it with `?stream=true`"));
    CHECK(c.get(at.path + "/" + id + "?stream=true").body == received.body);
  }
}

TEST_CASE("Last-Event-ID must name an event, and the body be that of its request") {
  for (const auto& at : routes) {
    running_server s;
    client c(s.port());
    const auto body = at.body(R"(,"stream":true,"store":true)");
    const auto ids = event_ids(c.post(at.path, body).body);
    CHECK(c.post(at.path, body, last_event("nonsense")).status == 400);
    CHECK(c.post(at.path, body, last_event(response_of(ids[0]) + ":x")).status == 400);
    CHECK(c.post(at.path, body, last_event("resp_1:1")).status == 404);
    CHECK(c.post(at.path, body, last_event(response_of(ids[0]) + "0:1")).status == 404);
    const auto other =
        c.post(at.path, at.body(R"(,"stream":true,"store":true,"seed":4)"), last_event(ids[0]));
    CHECK(other.status == 400);
    CHECK(contains(other.body, "the body must be that of the request"));
    const auto elsewhere = at.path + "/" + response_of(ids[0]) + "?stream=true";
    CHECK(c.get(elsewhere, last_event("cmpl-0:1")).status == 400);
    CHECK(s.engine.submitted().size() == 1);
    CHECK(c.post(at.path, body, last_event("")).status == 200); // an empty id counts as none
    CHECK(s.engine.submitted().size() == 2);
  }
  running_server s;
  client c(s.port());
  const auto refused = c.post("/v1/completions", R"({"prompt":["a","b"],"store":true})");
  CHECK(refused.status == 400);
  CHECK(contains(refused.body, "`store` must be false where `prompt` is a list of several"));
  CHECK(c.post("/v1/completions", R"({"prompt":["a"],"store":true})").status == 200);
  CHECK(c.post("/v1/completions", R"({"prompt":["a","b"],"store":false})").status == 200);
}

TEST_CASE("A request that a router wrote anew is read on by what the client sent") {
  const std::string prompt = R"("prompt":"Hi")";
  struct pair {
    std::string asked, repeated;
    bool same;
  };
  const std::string stored = R"(,"stream":true,"store":true)";
  for (const auto& [asked, repeated, same] : std::vector<pair>{
           {R"({"echo":false,"ignore_eos":false,)" + prompt + stored + "}",
            "{" + prompt + stored + "}", true},
           {"{" + prompt + stored + R"(,"temperature":1.0})",
            "{" + prompt + R"(,"temperature":1)" + stored + "}", true},
           {"{" + prompt + stored + R"(,"stream_options":{"include_usage":true},"seed":1})",
            "{" + prompt + stored + R"(,"seed":1,"stream_options":{"include_usage":true}})", true},
           {"{" + prompt + stored + R"(,"seed":1})", "{" + prompt + stored + R"(,"seed":2})",
            false},
           {"{" + prompt + stored + R"(,"seed":1})", "{" + prompt + stored + R"(,"seed":"1"})",
            false},
           {"{" + prompt + stored + "}", "{" + prompt + stored + R"(,"seed":2})", false},
           {"{" + prompt + stored + "}", R"({"prompt":"Ho")" + stored + "}", false},
           {"{" + prompt + stored + "}", R"({"stream":true,"store":true})", false},
           {R"({"prompt":["Hi"])" + stored + "}", "{" + prompt + stored + "}", false},
       }) {
    CAPTURE(asked, repeated);
    running_server s;
    client c(s.port());
    const auto whole = c.post("/v1/completions", asked);
    REQUIRE(whole.status == 200);
    const auto again = c.post("/v1/completions", repeated, last_event(event_ids(whole.body)[0]));
    CHECK(again.status == (same ? 200 : 400));
    if (same) CHECK(whole.body.ends_with(again.body));
    CHECK(s.engine.submitted().size() == 1);
  }
}

TEST_CASE("A body of very many members is compared in a moment") {
  value_object asked, body;
  for (int i = 0; i < 400'000; ++i) {
    asked.emplace_back("member" + std::to_string(i), i);
    body.emplace_back("member" + std::to_string(399'999 - i), 399'999 - i);
  }
  CHECK(repeats(body, asked)); // a search for each member would take many minutes
  body.front().second = value(-1);
  CHECK_FALSE(repeats(body, asked));
}

TEST_CASE("A completion of another tenant is as one that does not exist") {
  config::options all;
  for (const auto* name : {"ann", "bob"}) {
    all.tenants.emplace_back().name = name;
    all.tenants.back().key_sha256 = {digest_of(std::string("key-of-") + name)};
  }
  const std::string ann = "Authorization: Bearer key-of-ann\r\n";
  const std::string bob = "Authorization: Bearer key-of-bob\r\n";
  for (const auto& at : routes) {
    running_server s(script{}, all);
    client c(s.port());
    const auto body = at.body(R"(,"stream":true,"store":true)");
    const auto ids = event_ids(c.post(at.path, body, ann).body);
    const auto id = response_of(ids[0]);
    CHECK(c.post(at.path, body, ann + last_event(ids[0])).status == 200);
    CHECK(c.post(at.path, body, bob + last_event(ids[0])).status == 404);
    CHECK(c.get(at.path + "/" + id, bob).status == 404);
    CHECK(c.get(at.path + "/" + id + "?stream=true", bob).status == 404);
    CHECK(c.post(at.path + "/" + id + "/cancel", "", bob).status == 404);
    CHECK(c.get(at.path + "/" + id, ann).status == 200);
  }
}

TEST_CASE("Completions of several choices go on after a restart with the numbers that they had") {
  for (const auto& at : routes) {
    const scratch_folder folder;
    config::options all;
    all.responses.folder = folder.path().string();
    all.responses.sync = "never";
    all.server.drain_timeout = 50ms;
    const auto body = at.body(R"(,"stream":true,"store":true,"n":3,"max_tokens":4000,"seed":5)");
    std::string received;
    {
      running_server s(endless_steps(), all);
      client c(s.port());
      c.send(post_text(at.path, body));
      received = c.read_until(" world");
      s.server->drain();
      received += c.read_until("[DONE]");
      CHECK(contains(received, R"("code":"interrupted")"));
      CHECK(contains(received, "read on with GET " + at.path + "/"));
      s.join();
    }
    const auto before = event_ids(received);
    running_server s(script{}, all);
    client c(s.port());
    const auto rest = c.post(at.path, body, last_event(before.back()));
    REQUIRE(rest.status == 200);
    const auto behind = event_ids(rest.body);
    REQUIRE_FALSE(behind.empty());
    CHECK(behind.front() == response_of(before.front()) + ":" + std::to_string(before.size()));
    CHECK(rest.body.ends_with("data: [DONE]\n\n"));
    REQUIRE(s.engine.submitted().size() == 1);
    const auto asked = s.engine.submitted().front();
    CHECK(asked.sampling.n == 3);
    CHECK(asked.sampling.seed == 5u);
    REQUIRE(asked.made.size() == 3);
    for (const auto& one : asked.made)
      CHECK(one.tokens.size() >= 2);
    // Reading from the beginning gives the events that were sent earlier with the same bytes.
    const auto whole = c.get(at.path + "/" + response_of(before.front()) + "?stream=true").body;
    for (const auto& one : before)
      CHECK(data_of(whole, one) == data_of(received, one));
    CHECK(event_ids(whole).size() == before.size() + behind.size());
  }
}
