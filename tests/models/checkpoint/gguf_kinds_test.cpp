#include <cstdint>
#include <string>
#include <vector>

#include "models/checkpoint/gguf/kinds.hpp"
#include "models/checkpoint/safetensors/read.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"

using namespace twill::models;
namespace gpu = twill::gpu;

namespace {

const gguf::kind_info& kind_named(const std::string& name) {
  for (std::uint32_t id = 0; id < 40; ++id)
    if (const auto* kind = gguf::find_kind(id); kind != nullptr && name == kind->name) return *kind;
  FAIL("no kind " + name);
  return *gguf::find_kind(0);
}

} // namespace

TEST_CASE("quantised blocks of every kind have exactly the values of the reference decoder") {
  const std::string name = GENERATE(as<std::string>{}, "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0",
                                    "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K");
  CAPTURE(name);
  tensor_table golden;
  REQUIRE(
      safetensors::read_into(golden, twill::test::golden_dir() + "/gguf_blocks.safetensors").ok());
  const stored_tensor& blocks = *golden.stored(name + ".blocks").value();
  const std::vector<float> values = golden.vector(name + ".values").value();

  const gguf::kind_info& kind = kind_named(name);
  REQUIRE(blocks.info.shape[1] == kind.block_bytes);
  REQUIRE(static_cast<std::int64_t>(values.size()) == blocks.info.shape[0] * kind.block_values);
  std::vector<std::uint8_t> codes(values.size());
  std::vector<float> scales(values.size() / static_cast<std::size_t>(kind.group));
  std::vector<float> offsets(scales.size());
  gguf::decode_row(kind, blocks.bytes.data(), static_cast<std::int64_t>(values.size()),
                   {codes.data(), scales.data(), offsets.data()});
  const int most = kind.packed == gpu::weight_kind::grouped_u4 ? 15 : 255;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t g = i / static_cast<std::size_t>(kind.group);
    CAPTURE(i);
    REQUIRE(codes[i] <= most);
    REQUIRE(scales[g] * static_cast<float>(codes[i]) + offsets[g] == values[i]);
  }
}
