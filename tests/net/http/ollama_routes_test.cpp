// Ollama's routes over a socket: streams, models, and errors of every layer.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "net/api_keys.hpp"
#include "net/digest.hpp"
#include "net/http/weight_files.hpp"
#include "tests/catch.hpp"
#include "tests/net/support/codec_support.hpp"
#include "tests/net/support/running_server.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::testing;

namespace {

constexpr const char* chat = R"({"model":"test-model","messages":[{"role":"user","content":"x"}]})";

std::string error_of(const http_result& r) {
  const auto body = json(r.body);
  if (body.as_object()->size() != 1) return "more than an error: " + r.body;
  return *at(body, "error").as_string();
}

} // namespace

TEST_CASE("Ollama's chat streams lines unless it is told not to") {
  running_server s;
  client c(s.port());
  const auto r = c.post("/api/chat", chat);
  CHECK(r.status == 200);
  CHECK(r.header("content-type") == "application/x-ndjson");
  CHECK(std::count(r.body.begin(), r.body.end(), '\n') == 4); // three pieces and the end
  CHECK(contains(r.body, "\"done\":true"));
  const auto whole =
      c.post("/api/generate", R"({"model":"test-model:latest","prompt":"x","stream":false})");
  CHECK(whole.header("content-type") == "application/json");
  CHECK(at(json(whole.body), "response") == value("Hello, world"));
  CHECK(at(json(whole.body), "model") == value("test-model:latest"));
  CHECK(!at(json(whole.body), "context").as_list()->empty());
}

TEST_CASE("An Ollama stream that is silent stays silent, and its lines are as ever") {
  config::server_options o;
  o.keep_alive = 10ms;
  script play;
  play.start_delay = 60ms;
  play.step = 30ms;
  running_server s(o, play);
  client c(s.port());
  const auto r = c.post("/api/chat", chat);
  CHECK(r.status == 200);
  CHECK(std::count(r.body.begin(), r.body.end(), '\n') == 4);
  CHECK(!contains(r.body, "keep-alive"));
}

TEST_CASE("Errors of Ollama's routes are {\"error\"} at every layer") {
  config::options all;
  all.server.api_keys = {"secret"};
  all.server.max_body_bytes = 2000;
  running_server s(script{}, all);
  client c(s.port());
  const std::string key = "Authorization: Bearer secret\r\n";
  auto r = c.post("/api/chat", chat);
  CHECK(r.status == 401);
  CHECK(contains(error_of(r), "Authorization: Bearer KEY"));
  CHECK(c.get("/api/tags").status == 401);
  CHECK(c.get("/api/version").status == 200);
  r = c.get("/api/chat", key);
  CHECK(r.status == 405);
  CHECK(contains(error_of(r), "POST"));
  r = c.get("/api/nothing", key);
  CHECK(r.status == 404);
  CHECK(contains(error_of(r), "/api/nothing"));
  r = c.post("/api/chat", "{", key);
  CHECK(r.status == 400);
  CHECK(!error_of(r).empty());
  r = c.post("/api/chat", R"({"model":"other","messages":[]})", key);
  CHECK(r.status == 404);
  CHECK(contains(error_of(r), "\"other\""));
  r = c.post("/api/generate", R"({"prompt":"x","options":{"temperature":"hot"}})", key);
  CHECK(r.status == 400);
  CHECK(error_of(r) == "`options.temperature` must be a number, got \"hot\"");
  r = c.post("/api/create", R"({"model":"x"})", key);
  CHECK(r.status == 403);
  CHECK(contains(error_of(r), "/api/create"));
  for (const auto* path : {"/api/copy", "/api/push", "/api/blobs/sha256:0"})
    CHECK(c.post(path, "{}", key).status == 403);
  CHECK(c.get("/api/blobs/sha256:0", key).status == 403);
  r = c.post("/api/chat", std::string(3000, ' '), key);
  CHECK(r.status == 413);
  CHECK(!error_of(r).empty());
}

TEST_CASE("A failure is a status before the first line of a stream, and a line after it") {
  script play;
  play.failure = actors::request_error{actors::errc::executor_failed, "broken", ""};
  running_server late(script{play}, config::options{});
  const auto r = client(late.port()).post("/api/chat", chat);
  CHECK(r.status == 200);
  CHECK(r.body.ends_with("{\"error\":\"broken\"}\n"));
  play.failure.reset();
  play.refusal = actors::request_error{actors::errc::queue_full, "full", ""};
  running_server early(script{play}, config::options{});
  const auto refused = client(early.port()).post("/api/chat", chat);
  CHECK(refused.status == 429);
  CHECK(error_of(refused) == "full");
}

TEST_CASE("Ollama's routes say what is served") {
  running_server s;
  client c(s.port());
  const auto tags = json(c.get("/api/tags").body);
  CHECK(at(tags, "models").as_list()->size() == 1);
  CHECK(at(tags, "models", 0, "name") == value("test-model:latest"));
  CHECK(at(tags, "models", 0, "size") == value(0)); // there is no such file
  CHECK(at(json(c.get("/api/ps").body), "models", 0, "model") == value("test-model:latest"));
  for (const auto* body : {R"({"model":"test-model:latest"})", R"({"name":"test-model"})",
                           R"({"model":"test-model","verbose":true})"}) {
    const auto r = c.post("/api/show", body);
    CHECK(r.status == 200);
    CHECK(at(json(r.body), "model_info", "llama.context_length") == value(4096));
  }
  CHECK(c.post("/api/show", R"({"model":"other"})").status == 404);
  CHECK(error_of(c.post("/api/show", "{}")) == "`model` must be given, got nothing");
  CHECK(c.post("/api/show", R"({"model":5})").status == 400);
  CHECK(c.post("/api/show", R"({"model":""})").status == 400);
  const auto version = json(c.get("/api/version").body);
  CHECK(at(version, "version") == value("0.12.11"));
  CHECK(at(version, "twill").as_string() != nullptr);

  auto r = c.post("/api/pull", R"({"model":"test-model"})");
  CHECK(r.header("content-type") == "application/x-ndjson");
  CHECK(r.body == "{\"status\":\"success\"}\n");
  r = c.post("/api/pull", R"({"name":"test-model:latest","stream":false})");
  CHECK(r.body == R"({"status":"success"})");
  r = c.post("/api/pull", R"({"model":"llama3"})");
  CHECK(r.status == 404);
  CHECK(contains(error_of(r), "loads no models by request"));
}

TEST_CASE("A tenant sees its models alone on Ollama's routes") {
  config::options all;
  all.tenants.emplace_back().name = "guest";
  all.tenants[0].key_sha256 = {net::digest_of("guest-key")};
  all.tenants[0].models = {"of-others"};
  running_server s(script{}, all);
  client c(s.port());
  const std::string key = "Authorization: Bearer guest-key\r\n";
  CHECK(c.get("/api/tags", key).body == R"({"models":[]})");
  CHECK(c.get("/api/ps", key).body == R"({"models":[]})");
  CHECK(c.post("/api/show", R"({"model":"test-model"})", key).status == 404);
  CHECK(c.post("/api/pull", R"({"model":"test-model"})", key).status == 404);
  CHECK(c.post("/api/chat", chat, key).status == 404);
}

TEST_CASE("A request without a prompt is answered at once") {
  running_server s;
  client c(s.port());
  const auto loaded = c.post("/api/generate", R"({"model":"test-model"})");
  CHECK(at(json(loaded.body), "done_reason") == value("load"));
  const auto unloaded =
      c.post("/api/chat", R"({"model":"test-model","messages":[],"keep_alive":0})");
  CHECK(at(json(unloaded.body), "done_reason") == value("unload"));
  CHECK(at(json(unloaded.body), "message") == json(R"({"role":"assistant","content":""})"));
  CHECK(s.engine.submitted().size() == 1); // the model is not woken in order to be unloaded
}

TEST_CASE("A client that closes an Ollama stream ends its request") {
  running_server s({}, endless());
  client c(s.port());
  c.send(post_text("/api/chat", chat));
  c.read_until("\"done\":false");
  c.close();
  CHECK(s.engine.wait_cancelled(1));
}

TEST_CASE("The files of a model are looked at, whatever they are") {
  namespace fs = std::filesystem;
  const auto folder = fs::temp_directory_path() / ("twill-weights-" + std::to_string(::getpid()));
  fs::create_directories(folder / "inner.safetensors");
  const auto write = [&](const std::string& name, std::size_t bytes) {
    std::ofstream(folder / name) << std::string(bytes, 'x');
    return (folder / name).string();
  };
  const auto file = write("model.gguf", 10);
  CHECK(look_at_weights(file).bytes == 10);
  CHECK(look_at_weights(file).format == "gguf");
  CHECK(look_at_weights(file).modified_unix_s > 1'700'000'000);
  fs::remove(file);
  write("b-00001.safetensors", 3);
  write("b-00002.safetensors", 4);
  write("pytorch_model.bin", 100);
  write("config.json", 1000);
  CHECK(look_at_weights(folder.string()).bytes == 7);
  CHECK(look_at_weights(folder.string()).format == "safetensors");
  fs::create_symlink(folder / "b-00002.safetensors", folder / "c.safetensors");
  CHECK(look_at_weights(folder.string()).bytes == 11);
  for (const auto* nowhere : {"", "dummy:null", "/nowhere/at/all"}) {
    CHECK(look_at_weights(nowhere).bytes == 0);
    CHECK(look_at_weights(nowhere).format.empty());
  }
  fs::remove_all(folder);
}
