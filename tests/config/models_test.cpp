// [models.NAME] in files and as settings: what is read, in which order, where errors point, and
// that everything is printed back.
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
