// Stored responses over HTTP and WebSocket, with a scripted engine behind the server.
#include <filesystem>

#include "net/api_keys.hpp"
#include "net/http/page_of_list.hpp"
#include "tests/catch.hpp"
#include "tests/net/stored/stored_support.hpp"
#include "tests/net/support/codec_support.hpp"
#include "tests/net/support/running_server.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::testing;

namespace {

const std::string path = "/v1/responses";

script endless_steps() {
  auto s = endless();
  s.step = 1ms;
  return s;
}

std::string id_of(const http_result& reply) {
  return *at(json(reply.body), "id").as_string();
}

/// The id in a stream of events.
std::string id_in(const std::string& stream) {
  const auto begin = stream.find("\"id\":\"resp_") + 6;
  return stream.substr(begin, stream.find('"', begin) - begin);
}

value status_of(client& c, const std::string& id) {
  const auto reply = c.get(path + "/" + id);
  return reply.status == 200 ? at(json(reply.body), "status") : value(reply.status);
}

bool wait_status(client& c, const std::string& id, const char* status) {
  for (int i = 0; i < 5000; ++i) {
    if (status_of(c, id) == value(status)) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

std::string bearer(const std::string& key) {
  return "Authorization: Bearer " + key + "\r\n";
}

config::options two_tenants() {
  config::options all;
  for (const auto* name : {"ann", "bob"}) {
    all.tenants.emplace_back().name = name;
    all.tenants.back().key_sha256 = {digest_of(std::string("key-of-") + name)};
  }
  return all;
}

} // namespace

TEST_CASE("A response is read, continued and deleted after its reply") {
  running_server s;
  client c(s.port());
  const auto first = c.post(path, R"({"input":"hi"})");
  REQUIRE(first.status == 200);
  const auto id = id_of(first);
  REQUIRE(wait_status(c, id, "completed"));
  CHECK(c.get(path + "/" + id).body == first.body);
  const auto items = json(c.get(path + "/" + id + "/input_items").body);
  CHECK(at(items, "data", 0, "content", 0, "text") == value("hi"));
  CHECK(at(items, "has_more") == value(false));
  CHECK(c.get(path + "/" + id + "/input_items?limit=0").status == 400);
  CHECK(c.get(path + "/" + id + "/input_items?after=none").status == 400);
  const auto second = c.post(path, R"({"input":"and?","previous_response_id":")" + id + "\"}");
  CHECK(second.status == 200);
  const auto removed = c.post(path + "/" + id + "/cancel", ""); // already over, so nothing changes
  CHECK(removed.body == first.body);
  client other(s.port());
  other.send("DELETE " + path + "/" + id + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(at(json(other.read_reply().body), "deleted") == value(true));
  CHECK(c.get(path + "/" + id).status == 404);
  CHECK(c.post(path, R"({"input":"and?","previous_response_id":")" + id + "\"}").status == 400);
  CHECK(c.get(path + "/" + id_of(second)).status == 200); // stored with a copy of its history
  const auto unstored = c.post(path, R"({"input":"hi","store":false})");
  CHECK(c.get(path + "/" + id_of(unstored)).status == 404);
}

TEST_CASE("A stream is read again over HTTP from any number on") {
  running_server s;
  client c(s.port());
  const auto live = c.post(path, R"({"input":"hi","stream":true})");
  REQUIRE(live.status == 200);
  const auto id = id_in(live.body);
  const auto again = c.get(path + "/" + id + "?stream=true");
  CHECK(again.header("content-type") == live.header("content-type"));
  CHECK(again.body == live.body);
  const auto from = c.get(path + "/" + id + "?stream=true&starting_after=3").body;
  CHECK(live.body.ends_with(from));
  CHECK(contains(from, "\"sequence_number\":4,"));
  CHECK_FALSE(contains(from, "\"sequence_number\":3,"));
  CHECK(c.get(path + "/" + id + "?stream=true&starting_after=1000").body.empty());
  for (const auto* bad : {"x", "-1", "1.5", "99999999999999999999"})
    CHECK(c.get(path + "/" + id + "?stream=true&starting_after=" + bad).status == 400);
  CHECK(c.get(path + "/none?stream=true").status == 404);
}

TEST_CASE("A background response goes on without its client, and is read, followed and cancelled") {
  running_server s(config::server_options{}, endless_steps());
  client c(s.port());
  const auto begun = c.post(path, R"({"input":"hi","background":true})");
  REQUIRE(begun.status == 200);
  CHECK(at(json(begun.body), "status") == value("queued"));
  const auto id = id_of(begun);
  REQUIRE(wait_status(c, id, "in_progress"));
  {
    client reader(s.port());
    reader.send("GET " + path + "/" + id + "?stream=true HTTP/1.1\r\nHost: localhost\r\n\r\n");
    reader.read_until("output_text.delta");
  } // the reader disconnects
  CHECK_FALSE(s.engine.wait_cancelled(1, 50ms));
  const auto cancelled = c.post(path + "/" + id + "/cancel", "");
  CHECK(at(json(cancelled.body), "status") == value("cancelled"));
  CHECK(s.engine.wait_cancelled(1));
  const auto stream = c.get(path + "/" + id + "?stream=true").body;
  CHECK(contains(stream, "event: response.queued\n"));
  CHECK(contains(stream, "event: response.incomplete\n"));
}

TEST_CASE("What a client left in the middle is cancelled, and says so") {
  running_server s(config::server_options{}, endless_steps());
  client c(s.port());
  std::string id;
  {
    client reader(s.port());
    reader.send(post_text(path, R"({"input":"hi","stream":true})"));
    id = id_in(reader.read_until("output_text.delta"));
    reader.reset();
  }
  CHECK(s.engine.wait_cancelled(1));
  CHECK(wait_status(c, id, "cancelled"));
}

TEST_CASE("What the engine refuses has its status as before, and is not stored") {
  script refusing;
  refusing.refusal = actors::request_error{actors::errc::queue_full, "full", ""};
  running_server s(config::server_options{}, refusing);
  client c(s.port());
  CHECK(c.post(path, R"({"input":"hi"})").status == 429);
  CHECK(c.post(path, R"({"input":"hi","stream":true})").status == 429);
  // A refused background response is stored as failed, and readers get its events.
  const auto begun = c.post(path, R"({"input":"hi","background":true})");
  CHECK(begun.status == 200);
  CHECK(wait_status(c, id_of(begun), "failed"));
  const auto live = c.post(path, R"({"input":"hi","background":true,"stream":true})");
  CHECK(live.status == 200);
  CHECK(contains(live.body, "event: response.failed\n"));
  CHECK(c.get(path + "/" + id_in(live.body) + "?stream=true").body == live.body);
}

TEST_CASE("Unknown and foreign responses look the same") {
  running_server s(endless_steps(), two_tenants());
  client c(s.port());
  const auto begun = c.post(path, R"({"input":"hi","background":true})", bearer("key-of-ann"));
  REQUIRE(begun.status == 200);
  const auto id = id_of(begun);
  const auto blurred = [](std::string text, const std::string& name) {
    for (auto found = text.find(name); found != std::string::npos; found = text.find(name))
      text.replace(found, name.size(), "ID");
    return text;
  };
  const auto both = [&](auto ask) {
    const http_result foreign = ask(id), unknown = ask("resp_0");
    CHECK(foreign.status == 404);
    CHECK(unknown.status == 404);
    CHECK(blurred(foreign.body, id) == blurred(unknown.body, "resp_0"));
  };
  const auto key = bearer("key-of-bob");
  both([&](const std::string& one) { return c.get(path + "/" + one, key); });
  both([&](const std::string& one) { return c.get(path + "/" + one + "?stream=true", key); });
  both([&](const std::string& one) { return c.get(path + "/" + one + "/input_items", key); });
  both([&](const std::string& one) { return c.post(path + "/" + one + "/cancel", "", key); });
  CHECK(s.engine.running() == 1);
}

TEST_CASE("The error for a response of another server shows the name in its id") {
  auto all = two_tenants();
  all.server.name = "b2";
  running_server s(endless_steps(), all);
  client c(s.port());
  const auto key = bearer("key-of-bob");
  const std::string other = "resp_a1.0123456789abcdef01234567";
  const std::string place =
      "on this server, \"b2\": the id names the server \"a1\"; send the request there";
  const auto message_of = [](const std::string& body) {
    return *at(json(body), "error", "message").as_string();
  };
  const auto received = [&](const http_result& reply) {
    CHECK(reply.status == 404);
    CHECK(at(json(reply.body), "error", "code") == value("response_not_found"));
    CHECK(message_of(reply.body) == "there is no stored response \"" + other + "\" " + place);
  };
  received(c.get(path + "/" + other, key));
  received(c.get(path + "/" + other + "?stream=true", key));
  received(c.get(path + "/" + other + "/input_items", key));
  received(c.post(path + "/" + other + "/cancel", "", key));
  client deleting(s.port());
  deleting.send("DELETE " + path + "/" + other + " HTTP/1.1\r\nHost: localhost\r\n" + key + "\r\n");
  received(deleting.read_reply());
  const auto asked = R"({"input":"hi","previous_response_id":")" + other + "\"";
  const auto refused = c.post(path, asked + "}", key);
  CHECK(refused.status == 400);
  CHECK(at(json(refused.body), "error", "code") == value("previous_response_not_found"));
  CHECK(message_of(refused.body)
            .ends_with("got \"" + other +
                       "\"; this server is \"b2\", and the id names the server \"a1\": send the "
                       "request there"));
  client ws(s.port());
  REQUIRE(ws.upgrade(path, key) == 101);
  ws.send_frame(asked + R"(,"type":"response.create"})");
  CHECK(message_of(ws.read_text()) == message_of(refused.body));

  // No reply reveals whether an id of this server belongs to another tenant.
  const auto begun = c.post(path, R"({"input":"hi","background":true})", bearer("key-of-ann"));
  REQUIRE(begun.status == 200);
  const auto own = id_of(begun);
  CHECK(own.starts_with("resp_b2."));
  auto unknown = own;
  unknown.back() = unknown.back() == '0' ? '1' : '0';
  auto foreign = message_of(c.get(path + "/" + own, key).body);
  foreign.replace(foreign.find(own), own.size(), unknown);
  CHECK(foreign == message_of(c.get(path + "/" + unknown, key).body));
  CHECK(contains(foreign, "\" on this server, \"b2\"; it may have been deleted"));
}

TEST_CASE("A stopping server sends its readers where to continue, and the next one does") {
  const scratch_folder folder;
  config::options all;
  all.responses.folder = folder.path().string();
  all.responses.sync = "never";
  all.server.drain_timeout = 50ms;
  std::string id, received;
  {
    running_server s(endless_steps(), all);
    client c(s.port());
    c.send(post_text(path, R"({"input":"hi","stream":true})"));
    received = c.read_until("output_text.delta");
    id = id_in(received);
    SECTION("with time to end") {
      s.server->drain();
      received += c.read_until("event: error\n");
      received += c.read_until("\n\n");
      CHECK(contains(received, "\"code\":\"interrupted\""));
      CHECK_FALSE(contains(received, "response.failed"));
      s.join();
    }
    SECTION("at once") {
      s.server->stop();
      s.join();
    }
  }
  script rest;
  rest.step = 100us;
  running_server s(rest, all);
  client c(s.port());
  REQUIRE(wait_status(c, id, "completed"));
  const auto stream = c.get(path + "/" + id + "?stream=true").body;
  CHECK(contains(stream, "event: response.completed\n"));
  // Events that were sent before the stop have the same sequence numbers now.
  const auto first = received.find("event: response.created");
  const auto last = received.find("event: response.output_text.delta");
  std::size_t at = 0;
  for (int number = 0; number < 4; ++number) {
    const auto mark = "\"sequence_number\":" + std::to_string(number) + ",";
    at = stream.find(mark, at);
    CHECK(at != std::string::npos);
    CHECK(contains(received.substr(first, last - first), mark));
  }
}

TEST_CASE("Responses over a WebSocket are stored as those over HTTP") {
  running_server s;
  client ws(s.port());
  REQUIRE(ws.upgrade(path) == 101);
  for (const bool background : {false, true}) {
    ws.send_frame(background ? R"({"type":"response.create","input":"hi","background":true})"
                             : R"({"type":"response.create","input":"hi"})");
    std::string received, id;
    for (;;) {
      const auto text = ws.read_text();
      if (id.empty()) id = id_in(text);
      received += "data: " + text + "\n\n";
      if (contains(text, "\"type\":\"response.completed\"")) break;
    }
    client c(s.port());
    REQUIRE(wait_status(c, id, "completed"));
    auto stream = c.get(path + "/" + id + "?stream=true").body;
    for (auto at = stream.find("event: "); at != std::string::npos; at = stream.find("event: "))
      stream.erase(at, stream.find('\n', at) + 1 - at);
    CHECK(stream == received);
  }
  ws.send_frame(R"({"type":"response.create","input":"hi","store":false})");
  const auto id = id_in(ws.read_text());
  client c(s.port());
  CHECK(c.get(path + "/" + id).status == 404);
}

TEST_CASE("A page of a list is what its query asks for") {
  struct item {
    std::string id;
  };
  const std::vector<item> all{{"a"}, {"b"}, {"c"}, {"d"}, {"e"}};
  const auto page = [&](const std::string& query) {
    http_request request;
    request.query = query;
    return page_of_list(request, all, 2, 4, [](const item& one) { return "\"" + one.id + "\""; });
  };
  CHECK(page("").body ==
        R"({"object":"list","data":["e","d"],"first_id":"e","last_id":"d","has_more":true})");
  CHECK(
      page("order=asc&limit=4").body ==
      R"({"object":"list","data":["a","b","c","d"],"first_id":"a","last_id":"d","has_more":true})");
  CHECK(page("order=asc&after=d").body ==
        R"({"object":"list","data":["e"],"first_id":"e","last_id":"e","has_more":false})");
  CHECK(page("after=a").body ==
        R"({"object":"list","data":[],"first_id":null,"last_id":null,"has_more":false})");
  CHECK(page("after=%64&limit=1").body ==
        R"({"object":"list","data":["c"],"first_id":"c","last_id":"c","has_more":true})");
  for (const auto* bad : {"limit=0", "limit=5", "limit=x", "limit=-1", "limit=1x",
                          "limit=99999999999999999999999", "after=z"})
    CHECK(page(bad).status == 400);
  CHECK(query_of("a=1&b&c=%20x&a=2", "a") == "1");
  CHECK(query_of("a=1&b&c=%20x", "b").empty());
  CHECK(query_of("a=1&b&c=%20x", "c") == " x");
  CHECK(query_of("&&=&", "a").empty());
}
