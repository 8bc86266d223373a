// The default model with KV tiers (host memory and disk): tokens computed from blocks that were
// spilled and fetched, a process that is killed, and (hidden, since it is a measurement) how long a
// returning conversation waits.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "actors/engine.hpp"
#include "tests/actors/engine_fixture.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/default_model.hpp"
#include "tests/models/support/temp_folder.hpp"

using namespace twill;
using scripted::recorder;
namespace fs = std::filesystem;

namespace {

config::options options_with(const std::string& compute, std::int64_t kv_bytes) {
  config::options o;
  o.model.path = test::default_model_path();
  o.model.compute = compute;
  o.kv.memory_bytes = kv_bytes;
  return o;
}

struct served {
  explicit served(const config::options& o)
      : engine(actors::start_engine(o)), port(engine->port()) {
    scripted::eventually([&] {
      return port.state() == actors::engine_state::ready ||
             port.state() == actors::engine_state::failed;
    });
    INFO(port.state_detail());
    REQUIRE(port.state() == actors::engine_state::ready);
  }
  struct answer {
    std::vector<std::int32_t> ids;
    std::int32_t cached = 0;
    double first_token_s = 0;
  };
  answer turn(int who, int n_tokens, std::int32_t max_new) {
    actors::token_prompt ids;
    for (int i = 0; i < n_tokens; ++i)
      ids.push_back(1000 + (who * 7919 + i * 31 + i / 7 * who) % 20000);
    actors::request asked;
    asked.prompt = ids;
    asked.sampling.max_tokens = max_new;
    asked.sampling.temperature = 0;
    asked.sampling.ignore_eos = true;
    recorder r;
    const auto began = std::chrono::steady_clock::now();
    port.submit(asked, r.callback());
    for (int i = 0; i < 15 && !r.wait_tokens(1); ++i)
      continue;
    answer a;
    a.first_token_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    for (int i = 0; i < 15 && !r.wait_over(); ++i)
      continue;
    REQUIRE(r.over());
    REQUIRE_FALSE(r.error());
    a.ids = r.result().ids;
    a.cached = r.use().cached_tokens;
    return a;
  }
  std::unique_ptr<actors::engine> engine;
  actors::engine_port& port;
};

} // namespace

TEST_CASE("tokens from blocks that were in host memory or on disk are those of a device that holds "
          "all",
          "[actors][model]") {
  const test::temp_folder f;
  std::vector<std::vector<std::int32_t>> wanted;
  {
    served all(options_with("f32", 256 * mib));
    for (int who = 0; who < 3; ++who)
      wanted.push_back(all.turn(who, 100, 5).ids);
  }
  auto options = options_with("f32", 8 * mib); // memory for ten blocks
  options.kv.host_memory_bytes = 6 * mib;
  options.kv.disk_memory_bytes = 64 * mib;
  options.kv.disk_dir = f.path() + "/kv";
  served tiered(options);
  std::int32_t cached = 0;
  for (int i = 0; i < 9; ++i) {
    const auto a = tiered.turn(i % 3, 100, 5);
    CHECK(a.ids == wanted[static_cast<std::size_t>(i % 3)]);
    if (i >= 3) cached += a.cached;
  }
  CHECK(cached >= 3 * 96);
  const auto stats = tiered.port.stats();
  CHECK(stats.kv_host_hits > 0);
  CHECK(stats.kv_disk_hits > 0);
}

namespace {
config::options keeping(const std::string& dir) {
  auto options = options_with("f32", 64 * mib);
  options.kv.disk_memory_bytes = 64 * mib;
  options.kv.disk_dir = dir;
  options.kv.keep = true;
  return options;
}
} // namespace

TEST_CASE("serves until it is killed", "[.child]") {
  const char* dir = std::getenv("TWILL_TEST_KV_DIR");
  if (dir == nullptr) return; // run only as a child that the test kills
  served s(keeping(dir));
  for (int i = 0; i < 50; ++i) {
    s.turn(1, 100, 5);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

TEST_CASE("after kill -9 the first turn of an old conversation reads what was kept",
          "[actors][model]") {
  const test::temp_folder f;
  const config::options options = keeping(f.path() + "/kv");
  ::setenv("TWILL_TEST_KV_DIR", options.kv.disk_dir.c_str(), 1);
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl("/proc/self/exe", "test", "serves until it is killed", static_cast<char*>(nullptr));
    ::_exit(1);
  }
  const auto written = [&] {
    std::error_code failed;
    std::uintmax_t bytes = 0;
    for (const auto& file : fs::directory_iterator(f.path() + "/kv", failed))
      bytes += file.file_size(failed);
    return bytes;
  };
  REQUIRE(scripted::eventually([&] { return written() > 6 * 700000; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  served again(options);
  std::this_thread::sleep_for(std::chrono::milliseconds(300)); // the engine reads the file
  CHECK(again.turn(1, 100, 5).cached == 96);
}

TEST_CASE("how long a returning conversation waits for its first token", "[.measure]") {
  const test::temp_folder f;
  constexpr int n_conversations = 8, n_tokens = 1200;
  const auto base = [] { return options_with("auto", 56 * mib); }; // two of the eight fit
  struct kind {
    const char* name;
    config::options options;
  };
  std::vector<kind> kinds{{"off", base()}, {"host", base()}, {"disk", base()}};
  kinds[1].options.kv.host_memory_bytes = 512 * mib;
  kinds[2].options.kv.disk_memory_bytes = 512 * mib;
  kinds[2].options.kv.disk_dir = f.path() + "/kv";
  for (int round = 0; round < 3; ++round)
    for (const kind& k : kinds) {
      served s(k.options);
      std::vector<double> first, back;
      std::int32_t cached = 0;
      for (int who = 0; who < n_conversations; ++who)
        first.push_back(s.turn(who, n_tokens, 4).first_token_s);
      for (int who = 0; who < 4; ++who) {
        const auto a = s.turn(who, n_tokens, 4);
        back.push_back(a.first_token_s);
        cached += a.cached;
      }
      std::sort(first.begin(), first.end());
      std::sort(back.begin(), back.end());
      std::printf("round %d, tiers %s: %lld blocks, first turn %.3f s, returning %.3f s (median), "
                  "%d cached tokens of %d\n",
                  round, k.name, static_cast<long long>(s.port.stats().kv_blocks_total),
                  first[first.size() / 2], (back[1] + back[2]) / 2, cached, 4 * n_tokens);
      std::fflush(stdout);
    }
}
