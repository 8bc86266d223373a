// A daemon's engine with streamed weights draws the tokens that an engine with resident weights
// draws. If the disk fails, the requests of the running step fail, but the daemon goes on.
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <typeinfo>

#include "actors/detail/message_probe.hpp"
#include "actors/executor/decoder_runner.hpp"
#include "actors/messages.hpp"
#include "models/offload/machine/machine_cache.hpp"
#include "tests/actors/engine_fixture.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/faulty_store.hpp"
#include "tests/models/support/temp_folder.hpp"
#include "tests/paths.hpp"

using namespace scripted;

namespace {

config::options options_for(std::int32_t device_percent) {
  config::options o;
  o.model.path = test::golden_dir() + "/llama-tiny-fp16";
  o.model.compute = "f32";
  o.offload.device_percent = device_percent;
  o.offload.host_percent = device_percent == 100 ? 0 : 20;
  o.offload.ring_layers = 2;
  o.scheduler.max_step_tokens = 64;
  o.scheduler.max_running = 8;
  return o;
}

actors::request ids_request(std::int32_t first) {
  actors::request r;
  r.prompt = actors::token_prompt{first, first + 1, first + 2, first + 3};
  r.sampling.max_tokens = 12;
  r.sampling.temperature = 0;
  r.sampling.ignore_eos = true;
  return r;
}

struct real_engine {
  explicit real_engine(const config::options& options, models::offload::store_opener store = {})
      : engine(actors::start_engine_with(
            options, actors::make_decoder_runners(options, {}, std::move(store)))),
        port(engine->port()) {}
  bool ready() {
    return eventually([&] { return port.state() == actors::engine_state::ready; });
  }
  std::vector<std::int32_t> tokens(std::int32_t first) {
    recorder r;
    port.submit(ids_request(first), r.callback());
    if (!r.wait_over() || r.error()) return {};
    return r.result().ids;
  }
  std::unique_ptr<actors::engine> engine;
  actors::engine_port& port;
};

/// An engine plans from measurements of this machine where weights and KV lie and how many
/// sequences run at once. The measurements vary from day to day and are cached in a file in the
/// folder `cache`. Once an engine has loaded and has written the file, this replaces them by those
/// of a machine on which each pass through the layers waits for weights from the disk.
void remember_a_slow_disk(const std::string& cache) {
  std::string key;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cache))
    if (entry.is_regular_file()) std::getline(std::ifstream(entry.path()), key);
  REQUIRE(!key.empty());
  models::offload::machine_description on;
  on.device_flops = on.host_flops = 1e11;
  on.device_bytes_per_s = on.host_bytes_per_s = 2.5e10;
  on.h2d_bytes_per_s = on.d2h_bytes_per_s = 1e10;
  on.disk_read_bytes_per_s = on.disk_write_bytes_per_s = 1e9;
  on.unpacked_values_per_s = 4e9;
  on.device_kv_bytes_per_s = 5e10;
  on.copy_device_share = 0.5;
  on.layer = {{1, 5e-5}, {8, 1.4e-4}, {32, 4.5e-4}, {64, 8.5e-4}, {256, 3.3e-3}};
  models::offload::remember_machine(key, on);
}

} // namespace

TEST_CASE("an engine that streams its weights gives the tokens of one that holds them",
          "[actors][offload]") {
  real_engine resident(options_for(100)), streamed(options_for(0)), mixed(options_for(40));
  REQUIRE(resident.ready());
  REQUIRE(streamed.ready());
  REQUIRE(mixed.ready());
  for (std::int32_t first = 5; first < 9; ++first) {
    const auto wanted = resident.tokens(first);
    CHECK(wanted.size() == 12);
    CHECK(streamed.tokens(first) == wanted);
    CHECK(mixed.tokens(first) == wanted);
  }
}

TEST_CASE("an engine that streams its weights reports what its steps did when",
          "[actors][offload]") {
  real_engine resident(options_for(100)), streamed(options_for(0));
  REQUIRE(resident.ready());
  REQUIRE(streamed.ready());
  CHECK(resident.port.stats().streamed == nullptr);
  auto report = streamed.port.stats().streamed;
  REQUIRE(report != nullptr);
  CHECK(report->disk_bytes > report->host_bytes);
  CHECK(report->step_s == 0);
  REQUIRE(streamed.tokens(5).size() == 12);
  report = streamed.port.stats().streamed;
  CHECK(report->step_s > 0);
  CHECK(report->disk_read_bytes > 0);
  std::set<actors::stream_report::span_kind> kinds;
  for (const auto& span : report->spans) {
    kinds.insert(span.kind);
    CHECK(span.begin_s <= span.end_s);
    CHECK(double(span.end_s) <= report->step_s + 1e-3);
  }
  CHECK(kinds.count(actors::stream_report::span_kind::compute) == 1);
  CHECK(kinds.size() > 1);
}

TEST_CASE(
    "a model that does not fit is planned for, within the memory, with a resident one's tokens",
    "[actors][offload]") {
  config::options options;
  options.model.path = "dummy:opt-125m?hidden=256&heads=4&mlp=1024&layers=24";
  options.model.compute = "f32";
  options.scheduler.max_running = 8;
  options.offload.host_percent = 0;
  options.offload.ring_layers = 2;
  options.offload.typical_prompt_tokens = 48;
  options.offload.typical_output_tokens = 16;
  auto tight = options;
  tight.device.memory_bytes = 64 << 20; // as much as the weights alone
  const test::temp_folder cache;
  ::setenv("XDG_CACHE_HOME", cache.path().c_str(), 1);
  const auto make_runner = actors::make_decoder_runners(tight, {}, {});
  for (const int sequences : {1, 8}) { // one must fit on this machine, all if its disk is slow
    const auto runner = make_runner();
    const auto info = runner->load();
    INFO((info.ok() ? "" : info.detail()));
    REQUIRE(info.ok());
    CHECK(runner->memory_used_bytes() <= tight.device.memory_bytes);
    CHECK(info.value().n_blocks * info.value().block_tokens >= sequences * (48 + 16));
    CHECK(info.value().max_step_tokens >= 512);
    if (sequences == 1) remember_a_slow_disk(cache.path());
  }

  real_engine resident(options), planned(tight);
  REQUIRE(resident.ready());
  REQUIRE(planned.ready());
  for (std::int32_t first = 5; first < 7; ++first)
    CHECK(planned.tokens(first) == resident.tokens(first));
  ::unsetenv("XDG_CACHE_HOME");
}

TEST_CASE("a disk tier that fails costs one step's requests; the engine restarts and goes on",
          "[actors][offload]") {
  const auto faults = std::make_shared<test::store_faults>();
  real_engine e(options_for(0),
                [faults]() -> models::result<std::unique_ptr<models::offload::disk_store>> {
                  return std::unique_ptr<models::offload::disk_store>(
                      std::make_unique<test::faulty_store>(faults));
                });
  REQUIRE(e.ready());
  const auto wanted = e.tokens(5);
  REQUIRE(wanted.size() == 12);
  for (std::atomic<std::int64_t>* fault : {&faults->fail_read, &faults->flip_read}) {
    fault->store(0);
    recorder r;
    e.port.submit(ids_request(5), r.callback());
    REQUIRE(r.wait_over());
    REQUIRE(r.error());
    CHECK(r.error()->code == actors::errc::executor_failed);
    fault->store(-1);
    // The restart may have read ahead before the fault ended. A second restart is needed then.
    CHECK(eventually([&] { return e.tokens(5) == wanted; }));
  }
}

namespace {
std::atomic<int> kills_left{0};

void kill_offloaders(actors::actor_kind actor, const std::type_info&) {
  if (actor == actors::actor_kind::offloader && kills_left.fetch_sub(1) > 0)
    throw std::runtime_error("killed by the test");
}
} // namespace

TEST_CASE("streamed weights need no message to the offloader, which may die", "[actors][offload]") {
  real_engine resident(options_for(100));
  REQUIRE(resident.ready());
  const auto wanted = resident.tokens(5);
  struct probed {
    probed() { actors::installed_probe() = kill_offloaders; }
    ~probed() { actors::installed_probe() = nullptr; }
  };
  kills_left = 3;
  const probed kills;
  auto options = options_for(0);
  options.kv.host_memory_bytes = 1 << 20; // only then does the offloader receive KV tiers
  real_engine streamed(options);
  REQUIRE(streamed.ready());
  for (int i = 0; i < 8; ++i)
    CHECK(streamed.tokens(5) == wanted);
  CHECK(eventually([] { return kills_left.load() <= 0; }));
  CHECK(streamed.port.stats().executor_restarts == 0);
}

TEST_CASE("a model that cannot even be streamed within the memory is refused with the numbers",
          "[actors][offload]") {
  auto options = options_for(0);
  options.device.memory_bytes = 1 << 20;
  real_engine e(options);
  REQUIRE(eventually([&] { return e.port.state() == actors::engine_state::failed; }));
  CHECK(e.port.state_detail().find("device.memory") != std::string::npos);
}
