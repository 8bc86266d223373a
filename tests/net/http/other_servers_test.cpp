// Routes that clients of other servers use besides generation: TGI's /info, llama.cpp's /props and
// /slots, health in the Open Inference Protocol. A refused request gets an error in the format of
// the server that its route comes from.
#include "net/protocol/api_style.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"
#include "tests/net/support/running_server.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::testing;

TEST_CASE("Limits and models are said in the forms of other servers") {
  config::options all;
  all.scheduler.max_running = 3;
  all.scheduler.max_queued = 10;
  running_server s({}, all);
  s.engine.count = [](actors::engine_stats& to) { to.requests_running = 2; };
  client c(s.port());
  const auto info = json(c.get("/info").body);
  CHECK(at(info, "model_id") == value("test-model"));
  CHECK(at(info, "max_concurrent_requests") == value(13));
  CHECK(at(info, "max_best_of") == value(16));
  CHECK(at(info, "max_total_tokens") == value(4096));
  CHECK(at(info, "max_input_tokens") == value(4095));
  CHECK(at(json(c.get("/props").body), "total_slots") == value(3));
  CHECK(c.get("/slots?fail_on_no_slot=1").status == 200);
  const auto slots = json(c.get("/slots").body);
  CHECK(at(slots, 1, "is_processing") == value(true));
  CHECK(at(slots, 2, "is_processing") == value(false));
  CHECK(c.post("/apply-template", R"({"messages":[{"role":"user","content":"x"}]})").body ==
        R"({"prompt":"rendered"})");
  CHECK(c.get("/v2/models/test-model/ready").body == R"({"name":"test-model","ready":true})");
  CHECK(c.get("/v2/models/test-model").body ==
        R"({"name":"test-model","platform":"twill","inputs":[],"outputs":[]})");
  CHECK(c.get("/v2/models/nope/ready").status == 404);
}

TEST_CASE("Where all slots are busy a client may ask to be refused") {
  config::options all;
  all.scheduler.max_running = 2;
  running_server s({}, all);
  s.engine.count = [](actors::engine_stats& to) { to.requests_running = 5; };
  client c(s.port());
  const auto refused = c.get("/slots?fail_on_no_slot=1");
  CHECK(refused.status == 503);
  CHECK(at(json(refused.body), "error", "type") == value("unavailable_error"));
  CHECK(json(c.get("/slots").body).as_list()->size() == 2);
}

TEST_CASE("Readiness follows the engine, and being live does not") {
  running_server s;
  client c(s.port());
  CHECK(c.get("/v2/health/ready").body == R"({"ready":true})");
  s.engine.set_state(actors::engine_state::stalled);
  CHECK(c.get("/v2/health/ready").status == 503);
  CHECK(c.get("/v2/health/ready").body == R"({"ready":false})");
  CHECK(c.get("/v2/models/test-model/ready").status == 503);
  CHECK(c.get("/ping").status == 503);
  CHECK(c.get("/v2/health/live").status == 200);
}

TEST_CASE("A request without a key is refused in the form of its API") {
  config::options all;
  all.server.api_keys = {"secret"};
  running_server s({}, all);
  client c(s.port());
  for (const auto* path : {"/generate", "/generate_stream", "/"}) {
    const auto refused = c.post(path, R"({"inputs":"a"})");
    CHECK(refused.status == 401);
    CHECK(at(json(refused.body), "error_type") == value("invalid_api_key"));
  }
  for (const auto* path : {"/completion", "/completions", "/apply-template"}) {
    const auto refused = c.post(path, "{}");
    CHECK(refused.status == 401);
    CHECK(at(json(refused.body), "error", "code") == value(401));
  }
  CHECK(c.get("/props").status == 401);
  CHECK(c.get("/slots").status == 401);
  CHECK(at(json(c.get("/v2/models/test-model").body), "error_type") == value("invalid_api_key"));
  CHECK(at(json(c.get("/info").body), "error_type") == value("invalid_api_key"));
  for (const auto* path : {"/ping", "/v2", "/v2/health/live", "/v2/health/ready", "/"})
    CHECK(c.get(path).status == 200);
}

TEST_CASE("A slash at the end of a path changes nothing of its errors' form") {
  for (const auto* path : {"/generate", "/completion", "/api/chat", "/v1/messages", "/v2/models"}) {
    INFO(path);
    CHECK(style_of(path, false) != api_style::openai);
    CHECK(style_of(std::string(path) + "/", false) == style_of(path, false));
  }
}
