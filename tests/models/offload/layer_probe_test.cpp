// The measurements that a plan for streamed weights is based on: one layer of every family is run
// alone, and the results are cached.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "models/offload/machine/layer_probe.hpp"
#include "models/offload/machine/machine_cache.hpp"
#include "models/offload/machine/measured_machine.hpp"
#include "models/offload/model_shape.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/golden_folder.hpp"

using namespace twill;
namespace fs = std::filesystem;

TEST_CASE("the first layer of every family is timed, and leaves nothing behind") {
  auto names = test::golden_folders();
  names.insert(names.end(), test::golden_variants().begin(), test::golden_variants().end());
  REQUIRE(names.size() > 10);
  constexpr double quick = 1e-3;
  for (const std::string& name : names) {
    CAPTURE(name);
    const test::golden_folder c(name);
    auto& dev = test::shared_device();
    const auto shape = models::offload::model_shape(
        c.spec, gpu::dtype::f32, models::estimate_packed_weights(c.spec, *c.weights));
    models::offload::machine_description on;
    const auto probed = models::offload::probe_layer(dev, c.spec, *c.weights, {}, shape, quick, on);
    INFO((probed.ok() ? "" : probed.detail()));
    REQUIRE(probed.ok());
    const auto after = dev.memory_used(); // includes scratch memory, which stays allocated
    models::offload::machine_description again;
    CHECK(models::offload::probe_layer(dev, c.spec, *c.weights, {}, shape, quick, again).ok());
    CHECK(dev.memory_used() == after);
    CHECK(on.device_flops > 1e6);
    CHECK(on.device_kv_bytes_per_s > 1e3);
    REQUIRE(on.layer.size() == 5);
    for (std::size_t i = 0; i < on.layer.size(); ++i) {
      CHECK(on.layer[i].seconds > 0);
      if (i > 0) CHECK(on.layer[i].rows > on.layer[i - 1].rows);
    }
    CHECK(on.layer.back().seconds > on.layer.front().seconds);
  }
}

TEST_CASE("rates of a machine have another key wherever what they depend on differs") {
  gpu::device_info info;
  info.name = "a processor";
  info.isa = "avx2";
  info.threads = 4;
  models::model_spec spec;
  spec.family = "llama";
  spec.n_kv_heads = spec.head_dim = spec.mlp_size = spec.hidden_size = 8;
  models::compute_choice types;
  models::offload::offload_model shape;
  config::options options;
  std::set<std::string> keys;
  const auto key = [&] { return models::offload::machine_key(info, spec, types, shape, options); };
  keys.insert(key());
  CHECK(key() == *keys.begin());
  /// Changes one member, expects a new key, and restores the member.
  const auto differs = [&](auto& member, const auto& other) {
    const auto before = member;
    member = other;
    CHECK(keys.insert(key()).second);
    member = before;
    CHECK(keys.contains(key()));
  };
  differs(info.name, "another");
  differs(info.isa, "avx512");
  differs(info.threads, 5);
  differs(types.compute, gpu::compute_type::int8);
  differs(types.kv_type, gpu::dtype::f16);
  differs(spec.family, "opt");
  differs(spec.n_kv_heads, 9);
  differs(spec.head_dim, 9);
  differs(spec.mlp_size, 9);
  differs(spec.hidden_size, 9);
  differs(shape.layer_bytes, 1000.0);
  differs(options.offload.dir, "/another");
  differs(options.offload.reads, "cached");
  differs(options.offload.io_threads, 9);
  differs(options.offload.verify_every, 9);
}

TEST_CASE("a machine is remembered under its key; a damaged note is none") {
  const fs::path folder = fs::temp_directory_path() / "twill-machine-cache-test";
  fs::remove_all(folder);
  ::setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  models::offload::machine_description on;
  on.device_flops = 1.5e11;
  on.device_bytes_per_s = on.host_flops = on.host_bytes_per_s = 2e10;
  on.h2d_bytes_per_s = on.d2h_bytes_per_s = 7e9;
  on.disk_read_bytes_per_s = 1.8e9;
  on.disk_write_bytes_per_s = 1.2e9;
  on.unpacked_values_per_s = 4e9;
  on.device_kv_bytes_per_s = 1.9e10;
  on.copy_device_share = 0.5;
  on.layer = {{1, 4.25e-4}, {8, 1e-3 / 3}, {256, 0.01}};
  CHECK_FALSE(models::offload::remembered_machine("a key"));
  models::offload::remember_machine("a key", on);
  const auto back = models::offload::remembered_machine("a key");
  REQUIRE(back);
  CHECK(back->device_flops == on.device_flops);
  CHECK(back->device_kv_bytes_per_s == on.device_kv_bytes_per_s);
  CHECK(back->disk_read_device_share == 0);
  CHECK(back->copy_device_share == 0.5);
  REQUIRE(back->layer.size() == 3);
  CHECK(back->layer[1].rows == 8);
  CHECK(back->layer[1].seconds == on.layer[1].seconds);
  CHECK_FALSE(models::offload::remembered_machine("another key"));

  fs::path file;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) file = entry.path();
  std::string text;
  std::getline(std::ifstream(file), text, '\0');
  const auto damaged = [&](const std::string& what) {
    std::ofstream(file) << what;
    return !models::offload::remembered_machine("a key");
  };
  CHECK(damaged(""));
  CHECK(damaged(text.substr(0, text.find("layer"))));
  CHECK(damaged(text.substr(0, text.size() / 2)));
  std::string zero = text;
  zero.replace(zero.find("device_flops 150000000000"), 25, "device_flops 0           ");
  CHECK(damaged(zero));
  std::string backwards = text;
  backwards.replace(backwards.find("layer 256"), 9, "layer 002");
  CHECK(damaged(backwards));
  CHECK_FALSE(damaged(text));
  fs::remove_all(folder);
  ::unsetenv("XDG_CACHE_HOME");
}
