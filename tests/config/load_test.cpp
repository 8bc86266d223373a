#include "config/load.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <unistd.h>

#include "config/base/units.hpp"
#include "config/sampling.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"

using namespace twill;
using namespace twill::config;
using namespace std::chrono_literals;

namespace {

options must_load(const std::string& text, const std::vector<setting>& settings = {}) {
  auto loaded = load_text(text, "t.toml", settings);
  if (!loaded.ok()) FAIL(loaded.detail());
  return loaded.value();
}

std::string error_of(const std::string& text, const std::vector<setting>& settings = {}) {
  const auto loaded = load_text(text, "t.toml", settings);
  return loaded.ok() ? "(loaded)" : loaded.detail();
}

std::string set_error(const std::string& text) {
  const auto given = parse_setting(text);
  if (!given.ok()) return given.detail();
  return error_of("", {given.value()});
}

options with_set(const std::string& text) {
  return must_load("", {parse_setting(text).value()});
}

} // namespace

TEST_CASE("an empty file yields the defaults", "[config]") {
  const auto o = must_load("");
  CHECK(changed_keys(options{}, o).empty());
}

TEST_CASE("of several files and folders the later values win, and errors name the file",
          "[config]") {
  namespace fs = std::filesystem;
  const auto folder = fs::temp_directory_path() / ("twill-config-" + std::to_string(::getpid()));
  fs::create_directories(folder / "conf.d");
  const auto write = [&](const char* name, const char* text) {
    std::ofstream(folder / name) << text;
    return (folder / name).string();
  };
  const auto first = write("first.toml", "[log]\nlevel = 'debug'\n[server]\nlisten = 'a:1'");
  const auto last = write("last.toml", "[server]\nthreads = 4");
  write("conf.d/20.toml", "[server]\nlisten = 'c:3'");
  write("conf.d/10.toml", "[server]\nlisten = 'b:2'\nthreads = 3");
  write("conf.d/README", "no TOML");
  const std::vector<std::string> paths{first, "", (folder / "conf.d").string(), last};
  const auto loaded = load_files(paths);
  if (!loaded.ok()) FAIL(loaded.detail());
  CHECK(loaded.value().log.level == "debug");
  CHECK(loaded.value().server.listen == std::vector<std::string>{"c:3"});
  CHECK(loaded.value().server.threads == 4);
  CHECK(load_files(paths, {{"--set", "server.threads", "5"}}).value().server.threads == 5);

  const auto wrong = write("conf.d/15.toml", "[server]\nthreads = 0");
  CHECK(load_files(paths).detail().starts_with(wrong + ":2:11: `server.threads` must be"));
  CHECK(load_files({"/nowhere/x.toml"}).code() == load_errc::file_unreadable);
  for (int i = 0; i < 200; ++i)
    write(("conf.d/3" + std::to_string(i) + ".toml").c_str(), "");
  CHECK(load_files(paths).detail().find("at most 200 files, got 205") != std::string::npos);
  fs::remove_all(folder);
}

TEST_CASE("a renamed key is read under its old name, but not under both", "[config]") {
  CHECK(must_load("[offload]\nring_squares = 6").offload.kv_buffers == 6);
  CHECK(with_set("offload.ring_squares=7").offload.kv_buffers == 7);
  // A setting wins over the file, under either name.
  CHECK(must_load("[offload]\nring_squares = 6", {{"--set", "offload.ring_squares", "8"}})
            .offload.kv_buffers == 8);
  CHECK(must_load("[offload]\nkv_buffers = 6", {{"--set", "offload.ring_squares", "9"}})
            .offload.kv_buffers == 9);
  CHECK(
      error_of("[offload]\nkv_buffers = 5\nring_squares = 6") ==
      "t.toml:3:1: `offload.ring_squares` is the old name of `offload.kv_buffers`, which is given "
      "as well; remove `offload.ring_squares`");
  CHECK(set_error("offload.ring_squares=1").find("`offload.kv_buffers` must be") !=
        std::string::npos);
}

TEST_CASE("every kind of value is read from its table", "[config]") {
  const auto o = must_load(R"(
[model]
path = "/m.gguf"
compute = "int8"
[kv]
memory = "512 MiB"
block_tokens = 32
[device]
memory = 4294967296
[server]
max_body = 2048
idle_timeout = "5m"
header_timeout = 1500
keep_alive = 0
slow_reader_timeout = "1.5s"
api_keys = ["a", "b"]
)");
  CHECK(o.model.path == "/m.gguf");
  CHECK(o.model.compute == "int8");
  CHECK(o.kv.memory_bytes == 512 * mib);
  CHECK(o.kv.block_tokens == 32);
  CHECK(o.device.memory_bytes == 4 * gib);
  CHECK(o.server.max_body_bytes == 2048);
  CHECK(o.server.idle_timeout == 5min);
  CHECK(o.server.header_timeout == 1500ms);
  CHECK(o.server.keep_alive == 0ms);
  CHECK(o.server.slow_reader_timeout == 1500ms);
  CHECK(o.server.api_keys == std::vector<std::string>{"a", "b"});
}

TEST_CASE("dotted keys and inline tables mean the same as tables", "[config]") {
  CHECK(must_load("kv.block_tokens = 64").kv.block_tokens == 64);
  CHECK(must_load("kv = { block_tokens = 64 }").kv.block_tokens == 64);
  CHECK_FALSE(must_load("kv.prefix_cache = false").kv.prefix_cache);
}

TEST_CASE("a syntax error names file, line and column", "[config]") {
  const auto error = error_of("[kv]\nblock_tokens = = 3\n");
  CHECK(error.rfind("t.toml:2:16: ", 0) == 0);
  CHECK(error.find('\n') == std::string::npos);
  CHECK(error_of("[kv]\nmemory = 1\nmemory = 2\n").rfind("t.toml:3:", 0) == 0);
  CHECK(error_of("[kv]\nmemory = \"\xff\"\n").rfind("t.toml:2:", 0) == 0);
}

TEST_CASE("wrong types are refused with rule and value", "[config]") {
  CHECK(error_of("[server]\nlisten = 8080") ==
        "t.toml:2:10: `server.listen` must be a string or a list of strings, got 8080");
  CHECK(error_of("[kv]\nblock_tokens = \"16\"") ==
        "t.toml:2:16: `kv.block_tokens` must be an integer, got \"16\"");
  CHECK(error_of("[kv]\nblock_tokens = 16.0") ==
        "t.toml:2:16: `kv.block_tokens` must be an integer, got 16.0");
  CHECK(error_of("[kv]\nmemory = \"much\"") ==
        "t.toml:2:10: `kv.memory` must be a byte count such as \"512 MiB\" or 4096, got \"much\"");
  CHECK(error_of("[kv]\nmemory = nan").find("got nan") != std::string::npos);
  CHECK(error_of("[server]\nidle_timeout = \"5 days\"") ==
        "t.toml:2:16: `server.idle_timeout` must be a time such as \"30s\", \"500ms\" or integer "
        "milliseconds, got \"5 days\"");
  CHECK(error_of("[server]\napi_keys = [\"a\", 1]") ==
        "t.toml:2:12: `server.api_keys` must be a list of strings, got a list of 2 entries");
  CHECK(error_of("[server.listen]\nx = 1") ==
        "t.toml:1:1: `server.listen` must be a string or a list of strings, got a table");
  CHECK(error_of("server = 3") == "t.toml:1:1: `server` must be a table, got 3");
  CHECK(error_of("[log]\nlevel = 2026-01-01") ==
        "t.toml:2:9: `log.level` must be a string, got 2026-01-01");
}

TEST_CASE("impossible values are refused with rule and value", "[config]") {
  CHECK(error_of("[server]\nlisten = \"x\"") ==
        "t.toml:2:10: `server.listen` must be HOST:PORT or unix:/PATH, or a list of such "
        "addresses, got \"x\"");
  CHECK(error_of("[model]\ncompute = \"f8\"") ==
        "t.toml:2:11: `model.compute` must be \"auto\", \"f32\", \"f16\", \"bf16\", \"int8\" or "
        "\"w8a8\", "
        "got \"f8\"");
  CHECK(error_of("[kv]\nblock_tokens = 24") ==
        "t.toml:2:16: `kv.block_tokens` must be a power of two between 8 and 256, got 24");
  CHECK(error_of("[kv]\nmemory = -1") ==
        "t.toml:2:10: `kv.memory` must be between 0 and 64 TiB, got -1");
  CHECK(error_of("[server]\nidle_timeout = 0") ==
        "t.toml:2:16: `server.idle_timeout` must be between 100ms and 24h, got 0");
  CHECK(
      error_of("[scheduler]\nmax_running = 9223372036854775807") ==
      "t.toml:2:15: `scheduler.max_running` must be between 1 and 65536, got 9223372036854775807");
  CHECK(error_of("[server]\napi_keys = [\"\"]").find("non-empty strings") != std::string::npos);
}

TEST_CASE("numbers are integers or fractions, and -1 leaves them to the model", "[config]") {
  CHECK(must_load("").sampling.temperature == -1);
  CHECK(must_load("[sampling]\ntemperature = 0.2\ntop_p = 1\ntop_k = 40").sampling.temperature ==
        0.2);
  CHECK(must_load("[sampling]\ntop_p = 1").sampling.top_p == 1);
  CHECK(must_load("[sampling]\nmin_p = -1").sampling.min_p == -1);
  CHECK(with_set("sampling.temperature=0.7").sampling.temperature == 0.7);
  CHECK(error_of("[sampling]\ntemperature = \"hot\"") ==
        "t.toml:2:15: `sampling.temperature` must be a number, got \"hot\"");
  for (const char* wrong : {"nan", "inf", "-inf", "-0.5", "100.5"})
    CHECK(error_of(std::string("[sampling]\ntemperature = ") + wrong)
              .find("`sampling.temperature` must be between 0 and 100, or -1, got ") !=
          std::string::npos);
  const auto printed = print_config(with_set("sampling.top_p=0.9"));
  CHECK(printed.find("top_p = 0.9 # default: -1\n") != std::string::npos);
  CHECK(must_load(printed).sampling.top_p == 0.9);
}

TEST_CASE("configured sampling takes the place of the model's own", "[config]") {
  sampling_params own;
  own.temperature = 0.3f;
  own.top_k = 5;
  sampling_options configured;
  put_configured(configured, own);
  CHECK(own.temperature == 0.3f);
  CHECK(own.top_k == 5);
  configured.temperature = 0;
  configured.top_k = 0;
  configured.repetition_penalty = 1.1;
  put_configured(configured, own);
  CHECK(own.temperature == 0);
  CHECK(own.top_k == 0);
  CHECK(own.repetition_penalty == 1.1f);
}

TEST_CASE("the syntax of addresses is checked", "[config]") {
  for (const char* good : {"127.0.0.1:8080", "localhost:0", "[::1]:65535", "0.0.0.0:80", "a-b.c:1",
                           "unix:/run/twill.sock"})
    CHECK(must_load("[server]\nlisten = '" + std::string(good) + "'").server.listen ==
          std::vector<std::string>{good});
  for (const char* bad : {"", ":", "host", "host:", ":80", "host:65536", "host:-1", "host:8o",
                          "::1:80", "ho st:80", "[]:80", "host:80 ", "unix:", "unix:/", "unix:x"})
    CHECK(error_of("[server]\nlisten = '" + std::string(bad) + "'").find("must be HOST:PORT") !=
          std::string::npos);
}

TEST_CASE("load balancers are answered at a port or an address", "[config]") {
  for (const char* good : {"", "0", "8090", "127.0.0.1:8090", "[::1]:1", "unix:/run/agent.sock"})
    CHECK(must_load("[server]\nagent_listen = '" + std::string(good) + "'").server.agent_listen ==
          good);
  for (const char* bad : {"x", "65536", "-1", "8o", ":80", "host", "unix:x"})
    CHECK(
        error_of("[server]\nagent_listen = '" + std::string(bad) + "'") ==
        "t.toml:2:16: `server.agent_listen` must be PORT (of 127.0.0.1), HOST:PORT, unix:/PATH or "
        "empty, got \"" +
            std::string(bad) + "\"");
}

TEST_CASE("the name of a server may stand in an id", "[config]") {
  const auto longest = std::string(32, 'x');
  for (const auto& good : std::vector<std::string>{"", "gpu1", "A-z-09", longest})
    CHECK(must_load("[server]\nname = '" + good + "'").server.name == good);
  for (const auto& bad :
       std::vector<std::string>{"a.b", "a_b", "a b", "a/b", "\u00e9", longest + "x"})
    CHECK(error_of("[server]\nname = '" + bad + "'").find("must be 1 to 32 characters of") !=
          std::string::npos);
  CHECK(error_of("[server]\nname = 'gpu.1'") ==
        "t.toml:2:8: `server.name` must be 1 to 32 characters of A-Z, a-z, 0-9 and -, or empty, "
        "got \"gpu.1\"");
}

TEST_CASE("unknown keys are all listed, each with the nearest known one", "[config]") {
  const auto error = error_of("[server]\nlistne = \"x\"\n[modle]\npath = \"\"\n[kv]\nmax_body = 1\n"
                              "quux_zzzzzzz = 1\n");
  CHECK(error.find("t.toml:2:1: unknown key `server.listne`; did you mean `server.listen`?") !=
        std::string::npos);
  CHECK(error.find("t.toml:3:2: unknown table `[modle]`; did you mean `[model]`?") !=
        std::string::npos);
  CHECK(error.find("t.toml:6:1: unknown key `kv.max_body`; did you mean `server.max_body`?") !=
        std::string::npos);
  CHECK(error.find("t.toml:7:1: unknown key `kv.quux_zzzzzzz`") != std::string::npos);
  CHECK(error_of("lisen = 1").find("unknown key `lisen`") != std::string::npos);
  CHECK(error_of("listen = 1") ==
        "t.toml:1:1: unknown key `listen`; did you mean `server.listen`?");
}

TEST_CASE("settings take TOML values and bare words", "[config]") {
  CHECK(with_set("kv.memory=2GiB").kv.memory_bytes == 2 * gib);
  CHECK(with_set("kv.memory = 4096").kv.memory_bytes == 4096);
  CHECK(with_set("model.compute=f32").model.compute == "f32");
  CHECK(with_set("model.compute=\"f32\"").model.compute == "f32");
  CHECK(with_set("model.name=7").model.name == "7");
  CHECK(with_set("model.name=true").model.name == "true");
  CHECK(with_set("model.path=/a=b.gguf").model.path == "/a=b.gguf");
  CHECK(with_set("server.drain_timeout=0").server.drain_timeout == 0ms);
  CHECK(with_set("server.idle_timeout=30s").server.idle_timeout == 30s);
  CHECK(with_set("server.api_keys=['k']").server.api_keys == std::vector<std::string>{"k"});
}

TEST_CASE("settings win over the file, and later ones over earlier ones", "[config]") {
  const std::vector<setting> both{{"--set", "kv.block_tokens", "32"},
                                  {"--set", "kv.block_tokens", "64"}};
  CHECK(must_load("[kv]\nblock_tokens = 8", both).kv.block_tokens == 64);
}

TEST_CASE("errors of settings name the option", "[config]") {
  CHECK(set_error("server.listen=x") == "--set: `server.listen` must be HOST:PORT or unix:/PATH, "
                                        "or a list of such addresses, got \"x\"");
  CHECK(set_error("server.lisen=x") ==
        "--set: unknown key `server.lisen`; did you mean `server.listen`?");
  CHECK(set_error("novalue") == "--set: must be KEY=VALUE, got \"novalue\"");
  CHECK(set_error("=1") == "--set: must be KEY=VALUE, got \"=1\"");
  CHECK(set_error("kv.block_tokens=").find("must be an integer, got \"\"") != std::string::npos);
  CHECK(set_error("kv.block_tokens=16\nx=1").find("must be an integer") != std::string::npos);
  CHECK(error_of("", {{"--listen", "server.listen", "\"a:1\"", true}}) ==
        "--listen: `server.listen` must be HOST:PORT or unix:/PATH, or a list of such addresses, "
        "got \"\\\"a:1\\\"\"");
}

TEST_CASE("KV memory beyond the device's budget is refused", "[config]") {
  CHECK(error_of("[device]\nmemory = '1 GiB'\n[kv]\nmemory = '2 GiB'") ==
        "t.toml:4:10: `kv.memory` must be at most `device.memory` (1.00 GiB), got 2.00 GiB");
  CHECK(error_of("", {{"--set", "device.memory", "1"}}) == "(loaded)");
}

TEST_CASE("errors show long and unprintable values short and on one line", "[config]") {
  const auto error = error_of("[log]\nlevel = \"" + std::string(5000, 'x') + "\"");
  CHECK(error.size() < 400);
  CHECK(error_of("[log]\nlevel = \"a\\nb\"").find("got \"a\\u000Ab\"") != std::string::npos);
}

TEST_CASE("files that cannot be read are refused by name", "[config]") {
  const auto absent = load("/no/such/file.toml");
  REQUIRE_FALSE(absent.ok());
  CHECK(absent.code() == load_errc::file_unreadable);
  CHECK(absent.detail().rfind("/no/such/file.toml: ", 0) == 0);
  CHECK_FALSE(load(test::source_dir()).ok());
  CHECK(load("").ok());
}

TEST_CASE("a damaged configuration loads or fails, and never does harm", "[config]") {
  const std::string whole = print_config(options{});
  std::mt19937 draw(7); // a fixed seed, so that a failure can be repeated
  for (int round = 0; round < 1500; ++round) {
    std::string text = whole;
    for (int flips = 0; flips < 3; ++flips)
      text[draw() % text.size()] = static_cast<char>(draw());
    text.resize(text.size() - draw() % 2 * (draw() % text.size()));
    const auto loaded = load_text(text, "t.toml");
    if (!loaded.ok()) CHECK_FALSE(loaded.detail().empty());
  }
}

TEST_CASE("keys and values nest to a bounded depth, wherever they stand", "[config]") {
  const auto repeated = [](const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i)
      all += text;
    return all;
  };
  const std::string key = "a" + repeated(".a", 50'000);
  const std::string parts = "a key must have at most 32 parts, got more";
  for (const auto& text :
       {key + " = 1", "[" + key + "]", "[[" + key + "]]", "x = {" + key + " = 1}",
        "x = [1, {y = 2, " + key + " = 1}]", "a" + repeated(" . \"b\"", 40) + " = 1",
        "\"a\"" + repeated(".'a.b'", 40) + " = 1", "x = 'a'\n" + key + " = 1",
        "x = \"\\\"\"\n" + key + " = 1", "x = \"\"\n" + key + " = 1",
        "x = \"\"\"\n\"\"\\\"\"\"\"\"\n" + key + " = 1", "x = '''y'''''\n" + key + " = 1",
        "# \" ' [\n" + key + " = 1"}) {
    CAPTURE(text.substr(0, 60));
    CHECK(error_of(text).find(parts) != std::string::npos);
  }
  const std::string levels = "at most 32 lists and tables may lie within each other, got more";
  CHECK(error_of("x = " + repeated("[", 50'000)).find(levels) != std::string::npos);
  CHECK(error_of("x = " + repeated("{a = ", 50'000)).find(levels) != std::string::npos);
  CHECK(error_of("[server]\n" + key + " = 1") == "t.toml:2:64: " + parts);
  CHECK(set_error("server.threads=1\n" + key + " = 1").find("an integer") != std::string::npos);

  // Dots and brackets in a value or a comment are not limited, since they are no key.
  const std::string dots = repeated(".[{", 100);
  for (const auto& quotes : {"\"", "'", "\"\"\"", "'''"}) {
    CAPTURE(quotes);
    CHECK(must_load("model.path = " + (quotes + dots) + quotes).model.path == dots);
  }
  CHECK(must_load("model.path = \"\"\"" + dots + "\"\"\"\"\" # " + dots).model.path ==
        dots + "\"\"");
  const std::string deepest = "a" + repeated(".a", 31);
  CHECK(error_of(deepest + " = 1").find("unknown table `[a]`") != std::string::npos);
  CHECK(error_of("x = " + repeated("[", 32) + repeated("]", 32)).find("unknown key") !=
        std::string::npos);
}

TEST_CASE("the listener is one address or a list, TLS needs both files", "[config]") {
  CHECK(must_load("[server]\nlisten = ['a:1', 'unix:/x']").server.listen ==
        std::vector<std::string>{"a:1", "unix:/x"});
  CHECK(error_of("[server]\nlisten = []").find("must be HOST:PORT") != std::string::npos);
  CHECK(error_of("[server]\napi_keys = 'k'").find("must be a list") != std::string::npos);
  CHECK(
      error_of("[server]\ntls_key = 'k.pem'") ==
      "t.toml:2:11: `server.tls_key` must be given with `server.tls_certificate`, got one without "
      "the other");
  CHECK(error_of("[server]\ntrusted_proxies = ['10.0.0.0/40']").find("networks such as") !=
        std::string::npos);
}

TEST_CASE("where traces go, how many, and with which headers is checked", "[config]") {
  for (const char* good : {"", "http://127.0.0.1:4318", "https://host/otlp",
                           "http://[::1]:4318/v1/traces", "unix:/run/otel.sock"})
    CHECK(with_set(std::string("tracing.endpoint='") + good + "'").tracing.endpoint == good);
  for (const char* bad :
       {"127.0.0.1:4318", "ftp://host", "http://", "http://a b", "http://u@host", "unix:x"})
    CHECK(set_error(std::string("tracing.endpoint='") + bad + "'")
              .find("must be http://HOST:PORT, https://HOST:PORT, unix:/PATH or empty") !=
          std::string::npos);
  CHECK(with_set("tracing.sample=0.25").tracing.sample == 0.25);
  CHECK(with_set("tracing.sample=1").tracing.sample == 1);
  for (const char* bad : {"-0.1", "1.5", "nan"})
    CHECK(set_error(std::string("tracing.sample=") + bad).find("between 0 and 1") !=
          std::string::npos);
  CHECK(with_set("tracing.headers=['A-B: c']").tracing.headers ==
        std::vector<std::string>{"A-B: c"});
  for (const char* bad : {"no colon", ": x", "A B: c", "A: b\\r\\nX: y"})
    CHECK(set_error(std::string("tracing.headers=[\"") + bad + "\"]").find("header lines") !=
          std::string::npos);
  CHECK(set_error("metrics.compat=sglang").find("must be \"none\", \"vllm\" or \"0.1\"") !=
        std::string::npos);
}
