#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "config/base/units.hpp"
#include "config/detail/keys.hpp"
#include "config/load.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"

using namespace twill;
using namespace twill::config;

namespace {

/// Some other value that the key's rule allows.
detail::key_value other_value(const detail::key& k) {
  const std::vector<detail::key_value> candidates{std::string("f32"),
                                                  std::string("f16"),
                                                  std::string("host"),
                                                  std::string("warn"),
                                                  std::string("cached"),
                                                  std::string("fcfs"),
                                                  std::string("json"),
                                                  std::string("vllm"),
                                                  std::string("step"),
                                                  std::string("unix:/x"),
                                                  std::string("tcp://*:1"),
                                                  std::string("array"),
                                                  std::string("t\"\\"),
                                                  std::int64_t{64},
                                                  std::int64_t{1501},
                                                  std::int64_t{300 * kib},
                                                  std::int64_t{128 * mib},
                                                  std::vector<std::string>{"10.0.0.0/8", "unix"},
                                                  std::vector<std::string>{"[::1]:0", "unix:/x"},
                                                  std::vector<std::string>{"k\"1", "k2"},
                                                  false,
                                                  true,
                                                  0.25};
  for (const auto& c : candidates) {
    const auto now = get(k, options{});
    if (c.index() == now.index() && c != now && k.possible.holds(c)) return c;
  }
  FAIL("no other value for " << k.name);
  return {};
}

} // namespace

TEST_CASE("every default keeps its own rule and every key is named once", "[config]") {
  std::set<std::string_view> names;
  for (const auto& k : detail::all_keys()) {
    INFO(k.name);
    CHECK(k.possible.holds(get(k, options{})));
    CHECK(names.insert(k.name).second);
    CHECK_FALSE(k.doc.empty());
  }
}

TEST_CASE("secrets are neither printed nor repeated in errors", "[config]") {
  options o;
  o.server.api_keys = {"hush-1", "hush-2"};
  const auto text = print_config(o);
  CHECK(text.find("hush") == std::string::npos);
  CHECK(text.find("# api_keys is set; its value is not shown\n") != std::string::npos);
  CHECK(load_text(text, "printed", {}).ok());
  const auto wrong = load_text("[server]\napi_keys = \"hush-1\"\n", "t.toml", {});
  REQUIRE(!wrong.ok());
  CHECK(wrong.detail() ==
        "t.toml:2:12: `server.api_keys` must be a list of strings, got a value that is not shown");
}

TEST_CASE("the printed configuration loads to the same options", "[config]") {
  options changed;
  std::size_t n_changed = 0;
  for (const auto& k : detail::all_keys()) {
    if (k.secret) continue; // secrets are not printed
    set(k, changed, other_value(k));
    ++n_changed;
  }
  changed.device.memory_bytes = changed.kv.memory_bytes;
  changed.kv.prefix_cache = true; // which `kv.events` needs
  --n_changed;
  for (const auto& o : {options{}, changed}) {
    const auto text = print_config(o);
    const auto loaded = load_text(text, "printed", {});
    INFO(text);
    if (!loaded.ok()) FAIL(loaded.detail());
    CHECK(changed_keys(o, loaded.value()).empty());
  }
  CHECK(changed_keys(options{}, changed).size() == n_changed);
}

TEST_CASE("the printed configuration marks defaults and documents each key", "[config]") {
  options o;
  o.kv.block_tokens = 32;
  const auto text = print_config(o);
  CHECK(text.find("listen = \"127.0.0.1:8080\" # default\n") != std::string::npos);
  CHECK(text.find("block_tokens = 32 # default: 16\n") != std::string::npos);
  CHECK(text.find("idle_timeout = \"5m\" # default\n") != std::string::npos);
  CHECK(text.find("# How many positions of a sequence one KV block holds.\n") != std::string::npos);
}

TEST_CASE("the reference page is the one the code prints", "[config]") {
  std::ifstream stream(test::source_dir() + "/config/reference.md");
  const std::string page{std::istreambuf_iterator<char>(stream), {}};
  CHECK(page == print_reference());
}

TEST_CASE("the example files load", "[config]") {
  for (const char* name : {"minimal", "server", "low-memory"}) {
    const auto loaded = load(test::source_dir() + "/config/examples/" + name + ".toml");
    if (!loaded.ok()) FAIL(loaded.detail());
    CHECK_FALSE(changed_keys(options{}, loaded.value()).empty());
  }
}
