// The section [models.NAME] in configuration files and as command-line settings: what is read, in
// which order, which place an error names, and that everything is printed back.
#include <chrono>
#include <string>

#include "config/load.hpp"
#include "tests/catch.hpp"

using namespace twill::config;
using namespace std::chrono_literals;

namespace {

twill::result<options, load_errc> load_toml(const std::string& text,
                                            const std::vector<setting>& settings = {}) {
  return load_text(text, "t.toml", settings);
}

std::string error_of(const std::string& text, const std::vector<setting>& settings = {}) {
  const auto loaded = load_toml(text, settings);
  return loaded.ok() ? "(loaded)" : loaded.detail();
}

const std::string two = "[models.small]\npath = \"/s\"\npin = true\naliases = [\"tiny\"]\n"
                        "[models.\"big:7b\"]\npath = \"/b\"\nname = \"big\"\ncompute = \"f32\"\n"
                        "keep_alive = \"5m\"\n";

} // namespace

TEST_CASE("models are read in their order, printed back, and seen to change", "[config]") {
  const auto loaded = load_toml(two);
  if (!loaded.ok()) FAIL(loaded.detail());
  const auto& models = loaded.value().models;
  REQUIRE(models.size() == 2);
  CHECK(models[0].id() == "small");
  CHECK(models[0].model.path == "/s");
  CHECK(models[0].pin);
  CHECK(models[0].aliases == std::vector<std::string>{"tiny"});
  CHECK(models[1].key == "big:7b");
  CHECK(models[1].id() == "big");
  CHECK(models[1].model.compute == "f32");
  CHECK(models[1].keep_alive == 5min);
  const auto printed = print_config(loaded.value());
  const auto again = load_text(printed, "printed", {});
  if (!again.ok()) FAIL(again.detail());
  CHECK(again.value().models == models);
  CHECK(changed_keys(loaded.value(), again.value()).empty());
  CHECK(changed_keys(options{}, loaded.value()) == std::vector<std::string>{"models"});
}

TEST_CASE("settings and later files add to models", "[config]") {
  const auto set = load_toml(
      two, {{"--set", "models.small.path", "/other"}, {"--set", "models.v1.5.path", "7"}});
  if (!set.ok()) FAIL(set.detail());
  REQUIRE(set.value().models.size() == 3);
  CHECK(set.value().models[0].model.path == "/other");
  CHECK(set.value().models[0].pin);
  CHECK(set.value().models[2].key == "v1.5");
  CHECK(set.value().models[2].model.path == "7");
  const auto files =
      load_sources({{"1.toml", two}, {"2.toml", "[models.small]\npin = false\n"}}, {});
  REQUIRE(files.ok());
  CHECK_FALSE(files.value().models[0].pin);
  CHECK(files.value().models[0].model.path == "/s");
}

TEST_CASE("a model says where its KV events are published", "[config]") {
  const std::string received =
      "[models.small]\npath = \"/s\"\nkv.events = \"tcp://127.0.0.1:5557\"\n"
      "kv.events_format = \"array\"\n[models.other]\npath = \"/o\"\n";
  const auto loaded = load_toml(received, {{"--set", "models.other.kv.events", "tcp://*:5558"},
                                           {"--set", "models.a.kv.path", "/named a.kv"}});
  if (!loaded.ok()) FAIL(loaded.detail());
  const auto& models = loaded.value().models;
  REQUIRE(models.size() == 3);
  CHECK(models[0].kv_events == kv_event_options{"tcp://127.0.0.1:5557", "", "array"});
  CHECK(models[1].kv_events.endpoint == "tcp://*:5558");
  CHECK(models[2].key == "a.kv");
  const auto again = load_text(print_config(loaded.value()), "printed", {});
  if (!again.ok()) FAIL(again.detail());
  CHECK(again.value().models == models);
  CHECK(error_of("[models.a]\npath = \"/x\"\nkv.event = \"\"\n") ==
        "t.toml:3:4: unknown key `models.kv.event`; did you mean `models.kv.events`?");
  CHECK(error_of(received + "kv.events = \"tcp://127.0.0.1:5557\"\n")
            .starts_with("t.toml:7:13: `models.kv.events` must be another address for each model, "
                         "got \"tcp://127.0.0.1:5557\", which stands at t.toml:3:13 as well"));
  CHECK(error_of(received + "[kv]\nevents = \"tcp://127.0.0.1:1\"\n")
            .find("`kv.events` must not be given beside `[models.NAME]`") != std::string::npos);
}

TEST_CASE("what KV events cannot be published of is refused by name", "[config]") {
  const std::string on = "[kv]\nevents = \"tcp://127.0.0.1:5557\"\n";
  const auto tenant = [](char name) {
    return "[[tenants]]\nname = \"" + std::string(1, name) + "\"\nkey_sha256 = [\"" +
           std::string(64, name) + "\"]\n";
  };
  const std::string tenants = tenant('a'), another = tenant('b');
  CHECK(error_of(on) == "(loaded)");
  CHECK(error_of(on + tenants) == "(loaded)");
  CHECK(error_of(on + tenants + another)
            .starts_with("t.toml:2:10: `kv.events` must be given with `kv.share_prefixes = true`"));
  for (const auto* keys : {"[server]\napi_keys = [\"k\"]\n", "[server]\nkeys_file = \"/keys\"\n"})
    CHECK(error_of(on + keys).find("`kv.events` must be given with `kv.share_prefixes = true`") !=
          std::string::npos);
  CHECK(error_of(on + "share_prefixes = true\n" + tenants + another) == "(loaded)");
  CHECK(error_of(on + "prefix_cache = false\n").find("`kv.prefix_cache = true`") !=
        std::string::npos);
  for (const auto* wrong :
       {"127.0.0.1:5557", "tcp://127.0.0.1", "tcp://:5557", "tcp://1.2.3.4:70000",
        "udp://1.2.3.4:1", "ipc:///run/kv", "tcp://localhost:1", "tcp://1.2.3.4:1 ", "inproc://x",
        "tcp://*", "tcp://**:1"})
    CHECK(error_of("[kv]\nevents = \"" + std::string(wrong) + "\"\n")
              .find("`kv.events` must be tcp://ADDRESS:PORT") != std::string::npos);
  for (const auto* right : {"tcp://*:5557", "tcp://[::1]:0", "tcp://10.0.0.1:5557", ""})
    CHECK(error_of("[kv]\nevents = \"" + std::string(right) + "\"\n") == "(loaded)");
}

TEST_CASE("errors of models name the place, the rule and the value", "[config]") {
  CHECK(error_of("[models.a]\npth = \"/x\"\n")
            .find("t.toml:2:1: unknown key `models.pth`; did you mean `models.path`?") == 0);
  CHECK(error_of("[models.a]\n") == "t.toml:1:9: `models.path` must be given in `[models.a]`");
  CHECK(error_of("[models.\"a b\"]\npath = \"/x\"\n")
            .find("t.toml:1:9: the NAME of `[models.NAME]` must be 1 to 128 letters") == 0);
  CHECK(error_of("models = 3\n").find("`models` must be a table of tables") != std::string::npos);
  CHECK(error_of("[models]\na = 3\n").find("t.toml:2:1: `models.a` must be a table") == 0);
  CHECK(error_of(two + "[model]\npath = \"/m\"\n")
            .find("t.toml:11:8: `model.path` must not be given beside `[models.NAME]`") == 0);
  CHECK(error_of(two + "[models.tiny]\npath = \"/t\"\n")
            .find("the name \"tiny\" in `[models.tiny]` must differ from every other name") !=
        std::string::npos);
  CHECK(error_of(two, {{"--set", "models.x", "/y"}}).find("must be models.NAME.KEY") !=
        std::string::npos);
}
