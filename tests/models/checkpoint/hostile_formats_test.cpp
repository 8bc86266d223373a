// Damaged safetensors, PyTorch and JSON files and folders must end in an error or a correct load,
// never in a crash. The test is meant for AddressSanitizer.
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/models/support/quantised_matrix.hpp"
#include "tests/models/support/temp_file.hpp"
#include "tests/models/support/temp_folder.hpp"
#include "tests/paths.hpp"

using namespace twill::fuzz;
namespace test = twill::test;

namespace {

std::string read_golden(const std::string& name) {
  std::ifstream in(test::golden_dir() + "/" + name, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string small_safetensors() {
  test::safetensors_writer w;
  w.add("a", "F32", {2, 3}, std::string(24, 'a'));
  w.add("b", "BF16", {4}, std::string(8, 'b'));
  w.add("c", "I64", {1, 1, 1}, std::string(8, 'c'));
  return w.build();
}

struct format {
  const char* name;
  std::string seed;
  bool (*open)(const std::string& path);
};

std::vector<format> formats() {
  return {{"safetensors", small_safetensors(), open_safetensors},
          {"pytorch, protocol 2", read_golden("pytorch/good_protocol2.bin"), open_pytorch},
          {"pytorch, protocol 4", read_golden("pytorch/good_protocol4.bin"), open_pytorch},
          {"config.json", read_golden("chatglm3-tiny-fp16/config.json"), open_json}};
}

} // namespace

TEST_CASE("every truncation of a safetensors, PyTorch or JSON file is refused", "[fuzz]") {
  for (const format& f : formats()) {
    CAPTURE(f.name);
    test::temp_file file(f.seed);
    REQUIRE(f.open(file.path()));
    for (std::size_t size = 1; size < f.seed.size(); size += 1 + size / 100) {
      CAPTURE(size);
      file.rewrite(f.seed.substr(0, size));
      const bool accepted = f.open(file.path());
      CHECK((!accepted || size + 1 == f.seed.size())); // a last newline may be missing
    }
  }
}

TEST_CASE("every flipped bit of a small file ends in an error or a load", "[fuzz]") {
  for (const format& f : formats()) {
    CAPTURE(f.name);
    test::temp_file file(f.seed);
    int accepted = 0;
    for (std::size_t at = 0; at < f.seed.size(); ++at) {
      std::string damaged = f.seed;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
      file.rewrite(damaged);
      accepted += f.open(file.path()) ? 1 : 0;
    }
    CHECK(accepted > 0);
    CHECK(accepted < static_cast<int>(f.seed.size()));
  }
}

TEST_CASE("random damage to safetensors, PyTorch and JSON files ends in an error or a load",
          "[fuzz]") {
  generator random(5);
  for (const format& f : formats()) {
    CAPTURE(f.name);
    test::temp_file file(f.seed);
    for (int round = 0; round < 500; ++round) {
      CAPTURE(round);
      file.rewrite(mutate(random, f.seed, f.seed));
      f.open(file.path());
    }
  }
  SUCCEED();
}

TEST_CASE("random damage to the files of a quantised folder ends in an error or a load", "[fuzz]") {
  generator random(6);
  for (const bool awq : {false, true}) {
    const test::quantised_matrix m({.rows = 24, .cols = 64, .act_order = !awq, .awq = awq});
    test::safetensors_writer w;
    m.add_to(w, "a");
    const test::temp_folder f;
    const std::pair<const char*, std::string> files[] = {
        {"config.json", m.config()},
        {"model.safetensors", w.build()},
        {"model.safetensors.index.json",
         R"({"weight_map": {"a.qweight": "model.safetensors", "a.scales": "model.safetensors"}})"}};
    for (const auto& [name, bytes] : files)
      f.write(name, bytes);
    REQUIRE(open_folder(f.path()));
    int accepted = 0;
    for (int round = 0; round < 600; ++round) {
      CAPTURE(round);
      const auto& [name, bytes] = files[round % 3];
      f.write(name, mutate(random, bytes, files[0].second));
      accepted += open_folder(f.path()) ? 1 : 0;
      f.write(name, bytes);
    }
    CHECK(accepted > 0);
  }
}
