// The routes that routers in front of several daemons call on each daemon, over loopback sockets.
#include <string>

#include "net/connection/agent_check.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"
#include "tests/net/support/running_server.hpp"

using namespace twill;
using namespace twill::testing;

namespace {

std::uint16_t agent_port(const running_server& s) {
  const auto address = s.server->agent_address();
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

std::string agent_says(const running_server& s) {
  client c(agent_port(s));
  return c.read_until("\n");
}

config::options with_agent() {
  config::options all;
  all.server.agent_listen = "0"; // a free port of 127.0.0.1
  all.scheduler.max_running = 8;
  return all;
}

} // namespace

TEST_CASE("The load is served without a key") {
  config::options all;
  all.server.api_keys = {"secret"};
  running_server s({}, all);
  s.engine.count = [](actors::engine_stats& to) {
    to.requests_running = 5;
    to.requests_waiting = 2;
  };
  client c(s.port());
  CHECK(c.get("/load").body == R"({"server_load":7})");
  CHECK(c.get("/get_load").body ==
        R"([{"dp_rank":0,"num_reqs":7,"num_waiting_reqs":2,"num_tokens":400}])");
  CHECK(c.get("/is_sleeping").body == R"({"is_sleeping":false})");
  CHECK(c.post("/v1/completions/render", R"({"prompt":"a"})").status == 401);
}

TEST_CASE("What is served has its name, and no path") {
  auto all = config::options();
  all.server.name = "b2";
  all.scheduler.max_running = 8;
  running_server s({}, all);
  client c(s.port());
  for (const auto* path : {"/server_info", "/get_server_info"}) {
    const auto reply = c.get(path);
    CHECK_FALSE(contains(reply.body, "/models/"));
    const auto info = json(reply.body);
    for (const auto* name : {"model_path", "tokenizer_path", "served_model_name", "model_id"})
      CHECK(at(info, name) == value("test-model"));
    CHECK(at(info, "instance_id") == value("b2"));
    CHECK(at(info, "kv_block_size") == value(16));
    CHECK(at(info, "max_total_tokens") == value(1600));
    CHECK(at(info, "max_running_requests") == value(8));
    CHECK(at(info, "context_length") == value(4096));
    CHECK(at(info, "dp_size") == value(1));
  }
  for (const auto* path : {"/model_info", "/get_model_info"}) {
    const auto info = json(c.get(path).body);
    CHECK(at(info, "model_path") == value("test-model"));
    CHECK(at(info, "model_type") == value("llama"));
    CHECK(at(info, "is_generation") == value(true));
  }
  s.engine.set_state(actors::engine_state::loading);
  CHECK(c.get("/server_info").status == 503);
  CHECK(c.get("/model_info").status == 503);
  CHECK(c.get("/is_sleeping").body == R"({"is_sleeping":false})");
}

TEST_CASE("A request whose router made up its model is one that names none") {
  running_server s;
  client c(s.port());
  CHECK(c.post("/v1/completions", R"({"prompt":"a","model":"unknown"})").status == 200);
  CHECK(c.post("/v1/completions", R"({"prompt":"a","model":"Unknown"})").status == 404);
}

TEST_CASE("A request is rendered to the ids that it becomes") {
  running_server s;
  client c(s.port());
  const auto text = json(c.post("/v1/completions/render", R"({"prompt":"ab"})").body);
  CHECK(at(text, 0, "token_ids") == json("[1,97,98]"));
  CHECK(at(text, 0, "model") == value("test-model"));
  CHECK(at(text, 0, "request_id").as_string()->starts_with("cmpl-"));
  const auto several =
      json(c.post("/v1/completions/render", R"({"prompt":[[5,6],"a"],"add_special_tokens":false})")
               .body);
  CHECK(at(several, 0, "token_ids") == json("[5,6]"));
  CHECK(at(several, 1, "token_ids") == json("[97]"));
  const auto cut = json(
      c.post("/v1/completions/render", R"({"prompt":[5,6,7,8],"truncate_prompt_tokens":2})").body);
  CHECK(at(cut, 0, "token_ids") == json("[7,8]"));
  const auto chat =
      json(c.post("/v1/chat/completions/render",
                  R"({"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}],)"
                  R"("store":true,"stream":true})")
               .body);
  CHECK(at(chat, "token_ids") == json("[42,42]"));
  CHECK(at(chat, "request_id").as_string()->starts_with("chatcmpl-"));
  CHECK(s.engine.submitted().empty());
  // These bodies are refused just as the route that generates refuses them.
  CHECK(c.post("/v1/completions/render", R"({"prompt":"a","n":0})").status == 400);
  CHECK(c.post("/v1/completions/render", R"({"prompt":"a","model":"other"})").status == 404);
  CHECK(c.post("/v1/completions/render", R"({"prompt":"","add_special_tokens":false})").status ==
        400);
  CHECK(c.post("/v1/chat/completions/render", R"({"messages":[]})").status == 400);
}

TEST_CASE("KV of other daemons is refused by name") {
  running_server s;
  client c(s.port());
  for (const std::string path :
       {"/v1/completions", "/v1/chat/completions", "/v1/completions/render"}) {
    const auto reply = c.post(path, R"({"prompt":"a","messages":[{"role":"user","content":"a"}],)"
                                    R"("kv_transfer_params":{"do_remote_prefill":true}})");
    CHECK(reply.status == 400);
    CHECK(at(json(reply.body), "error", "param") == value("kv_transfer_params"));
    CHECK(c.post(path, R"({"prompt":"a","messages":[{"role":"user","content":"a"}],)"
                       R"("kv_transfer_params":null})")
              .status == 200);
  }
}

TEST_CASE("An agent check is answered with the free places, or with drain") {
  using net::agent_line;
  CHECK(agent_line(true, 0, 8) == "up ready 100%\n");
  CHECK(agent_line(true, 7, 8) == "up ready 12%\n");
  CHECK(agent_line(true, 8, 8) == "up ready 1%\n");
  CHECK(agent_line(true, 80, 8) == "up ready 1%\n");
  CHECK(agent_line(true, 0, 0) == "up ready 1%\n");
  CHECK(agent_line(false, 0, 8) == "drain\n");

  running_server s(endless(), with_agent());
  CHECK(s.server->agent_address().starts_with("127.0.0.1:"));
  CHECK(agent_says(s) == "up ready 100%\n");
  client reader(s.port());
  reader.send(post_text("/v1/chat/completions",
                        R"({"messages":[{"role":"user","content":"a"}],"stream":true})"));
  reader.read_until("Hello");
  CHECK(agent_says(s) == "up ready 87%\n");
  for (const auto state : {actors::engine_state::loading, actors::engine_state::stalled,
                           actors::engine_state::restarting, actors::engine_state::failed}) {
    s.engine.set_state(state);
    CHECK(agent_says(s) == "drain\n");
  }
  s.engine.set_state(actors::engine_state::ready);
  // Silent sockets do not delay others.
  client silent(agent_port(s)), other(agent_port(s));
  CHECK(agent_says(s) == "up ready 87%\n");
  s.server->drain();
  CHECK(agent_says(s) == "drain\n");
  reader.read_until("Hello"); // the stream goes on
}
