// Host and Origin headers, and API keys: a web page of another site must not be able to use the
// daemon.
#include "net/http/access_policy.hpp"

#include "net/api_keys.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"
#include "tests/net/support/running_server.hpp"

using namespace twill;
using namespace twill::testing;

namespace {

using kind = net::access_policy::origin_kind;

config::server_options options(std::vector<std::string> origins,
                               std::vector<std::string> hosts = {}) {
  config::server_options o;
  o.cors_origins = std::move(origins);
  o.hosts = std::move(hosts);
  return o;
}

http_result exchange(client& c, const std::string& method, const std::string& headers) {
  c.send(method + " /v1/chat/completions HTTP/1.1\r\nContent-Length: 0\r\n" + headers + "\r\n");
  return c.read_reply();
}

} // namespace

TEST_CASE("Where only this machine connects, foreign names are not served") {
  const net::access_policy local{options({})};
  for (const auto* host : {"localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:8080",
                           "[::1]:8080", "192.168.0.7:80", ""})
    CHECK(local.serves_host(host));
  for (const auto* host : {"evil.example", "evil.example:8080", "localhost.evil.example",
                           "127.0.0.1.evil", ":80", "0x7f.1"})
    CHECK(!local.serves_host(host));
  CHECK(net::access_policy(options({}, {"Twill.Example"})).serves_host("twill.example:443"));
  CHECK(net::access_policy(options({}, {"*"})).serves_host("any.example"));
  auto open = options({});
  open.listen = {"0.0.0.0:80"};
  CHECK(net::access_policy(open).serves_host("any.example"));
  open.hosts = {"twill.example"};
  CHECK(!net::access_policy(open).serves_host("any.example"));
}

TEST_CASE("An origin is our own, allowed, or foreign") {
  const net::access_policy policy{options({"https://Chat.example"})};
  CHECK(policy.classify("", "localhost:1") == kind::none);
  CHECK(policy.classify("http://localhost:1", "localhost:1") == kind::own);
  CHECK(policy.classify("http://localhost:2", "localhost:1") == kind::foreign);
  CHECK(policy.classify("https://chat.example", "localhost:1") == kind::allowed);
  CHECK(policy.classify("http://chat.example", "localhost:1") == kind::foreign);
  CHECK(policy.classify("https://chat.example.evil", "localhost:1") == kind::foreign);
  CHECK(policy.classify("null", "localhost:1") == kind::foreign);
  CHECK(net::access_policy(options({"*"})).classify("null", "x") == kind::allowed);
}

TEST_CASE("A request for a foreign host is turned away, also on a WebSocket") {
  running_server s;
  client c(s.port());
  c.send("GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  const auto r = c.read_reply();
  CHECK(r.status == 421);
  CHECK(at(json(r.body), "error", "code") == value("wrong_host"));
  CHECK(c.get("/health").status == 200);
}

TEST_CASE("A page of a foreign origin can neither ask nor read") {
  running_server s;
  client c(s.port());
  const auto refused =
      c.post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"hi"}]})",
             "Origin: https://evil.example\r\nContent-Type: text/plain\r\n");
  CHECK(refused.status == 403);
  CHECK(contains(refused.body, "server.cors_origins"));
  CHECK(refused.header("access-control-allow-origin").empty());
  CHECK(s.engine.submitted().empty());
  CHECK(exchange(c, "OPTIONS",
                 "Host: localhost\r\nOrigin: https://evil.example\r\n"
                 "Access-Control-Request-Method: POST\r\n")
            .status == 403);
  CHECK(client(s.port()).upgrade("/v1/stream", "Origin: https://evil.example\r\n") == 403);
  CHECK(client(s.port()).upgrade("/v1/stream", "Origin: null\r\n") == 403);
  const auto plain = c.get("/v1/models");
  CHECK(plain.status == 200);
  CHECK(plain.header("access-control-allow-origin").empty());
}

TEST_CASE("Pages of our own and of allowed origins may ask") {
  running_server s(options({"https://chat.example"}));
  client c(s.port());
  const auto own = c.get("/v1/models", "Origin: http://localhost\r\n");
  CHECK(own.status == 200);
  const auto allowed = c.get("/v1/models", "Origin: https://chat.example\r\n");
  CHECK(allowed.status == 200);
  CHECK(allowed.header("access-control-allow-origin") == "https://chat.example");
  CHECK(allowed.header("vary") == "Origin");
  CHECK(client(s.port()).upgrade("/v1/stream", "Origin: https://chat.example\r\n") == 101);
  CHECK(client(s.port()).upgrade("/v1/stream", "Origin: http://localhost\r\n") == 101);
}

TEST_CASE("The preflight of OpenAI's JavaScript SDK passes where its origin is allowed") {
  running_server s(options({"https://chat.example"}));
  client c(s.port());
  const std::string headers = "authorization,content-type,x-stainless-arch,x-stainless-lang,"
                              "x-stainless-os,x-stainless-package-version,x-stainless-retry-count,"
                              "x-stainless-runtime,x-stainless-runtime-version,x-stainless-timeout";
  const auto r =
      exchange(c, "OPTIONS",
               "Host: localhost\r\nOrigin: https://chat.example\r\n"
               "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: " +
                   headers + "\r\n");
  CHECK(r.status == 204);
  CHECK(r.header("access-control-allow-origin") == "https://chat.example");
  CHECK(r.header("access-control-allow-methods") == "POST, OPTIONS");
  CHECK(r.header("access-control-allow-headers") == headers);
}

TEST_CASE("A tenant sees and uses its models alone") {
  config::options o;
  o.tenants = {{"all", {net::digest_of("one")}},
               {"some", {net::digest_of("two")}, 1, 0, 0, 0, {"test-model"}},
               {"none", {net::digest_of("three")}, 1, 0, 0, 0, {"another"}}};
  running_server s({}, o);
  client c(s.port());
  const auto key = [](const std::string& text) { return "X-Api-Key: " + text + "\r\n"; };
  const std::string body = R"({"prompt":"x","model":"test-model"})";
  CHECK(c.get("/v1/models").status == 401);
  for (const std::string allowed : {"one", "two"}) {
    CHECK(contains(c.get("/v1/models", key(allowed)).body, "test-model"));
    CHECK(c.get("/v1/models/test-model", key(allowed)).status == 200);
    CHECK(c.post("/v1/completions", body, key(allowed)).status == 200);
  }
  CHECK(s.engine.submitted().back().tenant == "some");
  CHECK(contains(c.get("/v1/models", key("three")).body, R"("data":[])"));
  CHECK(c.get("/v1/models/test-model", key("three")).status == 404);
  for (const std::string& asked : {body, std::string(R"({"prompt":"x"})")}) {
    const auto r = c.post("/v1/completions", asked, key("three"));
    CHECK(r.status == 404);
    CHECK(at(json(r.body), "error", "code") == value("model_not_found"));
    CHECK(!contains(r.body, "test-model")); // the reply must not name the model that is served
  }
  CHECK(c.post("/tokenize", body, key("three")).status == 404);
}

TEST_CASE("Keys come as Bearer, as X-Api-Key, or in a WebSocket's subprotocol") {
  auto o = options({});
  o.api_keys = {"one", "two"};
  running_server s(o);
  client c(s.port());
  CHECK(c.get("/v1/models", "X-Api-Key: two\r\n").status == 200);
  CHECK(c.get("/v1/models", "X-Api-Key: three\r\n").status == 401);
  CHECK(c.get("/v1/models", "Authorization: Bearer three\r\nX-Api-Key: two\r\n").status == 401);
  const std::string offer = "Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.";
  CHECK(client(s.port()).upgrade("/v1/stream", offer + "three\r\n") == 401);
  client socket(s.port());
  socket.send("GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
              "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
              offer + "two\r\n\r\n");
  const auto r = socket.read_reply();
  CHECK(r.status == 101);
  CHECK(r.header("sec-websocket-protocol") == "realtime"); // the reply never names the key
}

namespace {

config::options with_administrators() {
  config::options all;
  all.server.admin_listen = "127.0.0.1:0";
  all.server.cors_origins = {"*"};
  all.server.hosts = {"*"};
  all.server.max_connections = 1;
  all.tenants.emplace_back().name = "boss";
  all.tenants[0].key_sha256 = {net::digest_of("boss-key")};
  all.tenants[0].admin = true;
  all.tenants.emplace_back().name = "guest";
  all.tenants[1].key_sha256 = {net::digest_of("guest-key")};
  return all;
}

const std::string boss = "Authorization: Bearer boss-key\r\n";
const std::string guest = "Authorization: Bearer guest-key\r\n";

} // namespace

TEST_CASE("At the administrators' address each request needs an administrator's key") {
  running_server s({}, with_administrators());
  client hog(s.port()); // takes the only socket that clients may have
  CHECK(hog.get("/health").status == 200);
  for (const std::string path : {"/admin", "/health", "/metrics"}) {
    client c(s.admin_port());
    CHECK(c.get(path).status == 401);
    CHECK(c.get(path, "Authorization: Bearer wrong\r\n").status == 401);
    const auto refused = c.get(path, guest);
    CHECK(refused.status == 403);
    CHECK(at(json(refused.body), "error", "code") == value("not_admin"));
    CHECK(c.get(path, boss).status == 200);
  }
  client c(s.admin_port());
  CHECK(c.get("/v1/models", boss).status == 404);
  CHECK(contains(c.get("/admin", boss).body, R"("path":"/metrics")"));
  CHECK(c.upgrade("/v1/stream", boss) == 400);
}

TEST_CASE("The dashboard's files need no key, what it shows does") {
  running_server s({}, with_administrators());
  client c(s.admin_port());
  const auto page = c.get("/");
  CHECK(page.status == 200);
  CHECK(contains(page.body, "page/dashboard.js"));
  CHECK(contains(page.header("content-security-policy"), "script-src 'self'"));
  CHECK(c.get("/page/dashboard.js").status == 200);
  CHECK(c.get("/page/nothing.js").status == 404);
  CHECK(c.get("/admin/stream", boss).status == 426);
  CHECK(client(s.admin_port()).upgrade("/admin/stream") == 401);
  CHECK(client(s.admin_port()).upgrade("/admin/stream", guest) == 403);
  CHECK(
      client(s.admin_port()).upgrade("/admin/stream", boss + "Origin: https://evil.example\r\n") ==
      403);
  CHECK(client(s.port()).upgrade("/admin/stream", boss) == 400);
  CHECK(contains(client(s.port()).get("/").body, "page/chat.js"));
}

TEST_CASE("A dashboard gets the past, then a sample a second") {
  running_server s({}, with_administrators());
  client c(s.admin_port());
  REQUIRE(c.upgrade("/admin/stream", boss) == 101);
  CHECK(contains(c.read_text(), R"({"type":"history")"));
  std::vector<value> samples;
  while (samples.size() < 2) {
    auto frame = json(c.read_text());
    if (at(frame, "type") == value("sample")) samples.push_back(std::move(frame));
  }
  CHECK(at(samples[1], "models", 0, "kv_blocks_used") == value(std::int64_t{25}));
  CHECK(at(samples[1], "number") == value(*at(samples[0], "number").as_int() + 1));
}

TEST_CASE("Metrics of tenants are for administrators alone") {
  running_server s({}, with_administrators());
  actors::tenant_stats one;
  one.tenant = "guest";
  one.model = "m";
  one.requests_waiting = 3;
  one.finished = {{"stop", 2}};
  s.engine.set_tenants({one});
  client admin(s.admin_port());
  const auto received = admin.get("/metrics", boss).body;
  CHECK(contains(received, R"(twill_tenant_requests_waiting{tenant="guest",model_name="m"} 3)"));
  CHECK(contains(received, R"(finished_reason="stop"} 2)"));
  CHECK(contains(received, "twill_num_requests_running"));
  client c(s.port());
  CHECK(!contains(c.get("/metrics", boss).body, "guest"));
}

TEST_CASE("The routes of administrators are served to them alone") {
  auto all = with_administrators();
  all.server.admin_listen.clear();
  running_server s({}, all);
  CHECK(s.server->admin_address().empty());
  client c(s.port());
  CHECK(c.get("/admin", boss).status == 404);
}

TEST_CASE("At the administrators' address \"*\" allows no host and no web page") {
  running_server s({}, with_administrators());
  client c(s.admin_port());
  CHECK(c.get("/admin", boss + "Origin: https://evil.example\r\n").status == 403);
  client renamed(s.admin_port());
  renamed.send("GET /admin HTTP/1.1\r\nHost: evil.example\r\n" + boss + "\r\n");
  CHECK(renamed.read_reply().status == 421);
}
