// The compute type that is chosen for a model, depending on its weights, its configuration and the
// device.
#include "models/compute.hpp"

#include <optional>
#include <string>
#include <vector>

#include "models/checkpoint/folder.hpp"
#include "models/families/registry.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"

using namespace twill::models;
namespace gpu = twill::gpu;

namespace {

/// A checkpoint with one matrix of a given kind.
class one_matrix final : public checkpoint {
public:
  explicit one_matrix(const std::string& kind) : all_{{"w", {16, 32}, kind, 0}} {}
  std::vector<tensor_info> tensors() const override { return all_; }
  const tensor_info* find(std::string_view) const override { return nullptr; }
  result<gpu::weight_source> matrix(std::string_view) const override { return none(); }
  result<std::vector<float>> vector(std::string_view) const override { return none(); }

private:
  static failure none() { return {errc::missing_tensor, "none"}; }
  std::vector<tensor_info> all_;
};

const gpu::device_info plain{.kind = "host"};
const gpu::device_info wide{.kind = "host", .multiplies_bf16 = true, .half_kv = gpu::dtype::bf16};
const gpu::device_info chip{
    .kind = "cuda", .multiplies_bf16 = true, .multiplies_f16 = true, .half_activations = true};

using type = gpu::compute_type;
using kv = gpu::dtype;

struct expected {
  std::string kind;         ///< of most weights
  std::optional<kv> stated; ///< the configuration's dtype
  type on_plain, on_wide, on_chip;
  kv chip_kv;
};

const expected table[] = {
    {"AWQ-4", kv::f16, type::int8, type::int8, type::f16, kv::f16},
    {"AWQ-4", kv::bf16, type::int8, type::int8, type::bf16, kv::bf16},
    {"AWQ-4", {}, type::int8, type::int8, type::bf16, kv::bf16},
    {"GPTQ-4", kv::f16, type::int8, type::int8, type::f16, kv::f16},
    {"GPTQ-8", kv::bf16, type::int8, type::int8, type::bf16, kv::bf16},
    {"GPTQ-8", kv::f32, type::int8, type::int8, type::bf16, kv::bf16},
    {"Q4_0", {}, type::int8, type::int8, type::bf16, kv::bf16},
    {"Q4_1", {}, type::int8, type::int8, type::bf16, kv::bf16},
    {"Q4_K", {}, type::int8, type::int8, type::bf16, kv::bf16},
    {"Q6_K", {}, type::int8, type::int8, type::bf16, kv::bf16},
    {"Q8_0", {}, type::int8, type::int8, type::bf16, kv::bf16},
    {"F16", {}, type::f32, type::bf16, type::f16, kv::f16},
    {"F16", kv::f16, type::f32, type::bf16, type::f16, kv::f16},
    {"F16", kv::bf16, type::f32, type::bf16, type::f16, kv::f16},
    {"F16", kv::f32, type::f32, type::bf16, type::f16, kv::f16},
    {"BF16", {}, type::f32, type::bf16, type::bf16, kv::bf16},
    {"BF16", kv::bf16, type::f32, type::bf16, type::bf16, kv::bf16},
    {"BF16", kv::f16, type::f32, type::bf16, type::bf16, kv::bf16},
    {"BF16", kv::f32, type::f32, type::bf16, type::bf16, kv::bf16},
    {"F32", {}, type::f32, type::f32, type::f32, kv::f32},
    {"F32", kv::f16, type::f32, type::f32, type::f32, kv::f32},
};

} // namespace

TEST_CASE("auto resolves by the weights' kind, what the configuration says and the device") {
  for (const expected& row : table) {
    CAPTURE(row.kind, row.stated.has_value() ? gpu::name_of(*row.stated) : "no dtype");
    const one_matrix weights(row.kind);
    model_spec spec;
    spec.stated_type = row.stated;
    const auto on = [&](const gpu::device_info& device) {
      return resolve_compute("auto", "auto", spec, weights, device).value();
    };
    CHECK(on(plain).compute == row.on_plain);
    CHECK(on(wide).compute == row.on_wide);
    CHECK(on(chip).compute == row.on_chip);
    CHECK(on(chip).kv_type == row.chip_kv);
  }
}

TEST_CASE("a word decides over auto, and f16 needs a device that multiplies it") {
  const one_matrix weights("Q4_0");
  for (const gpu::device_info* device : {&plain, &wide}) {
    const auto refused = resolve_compute("f16", "auto", {}, weights, *device);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.code() == errc::unsupported);
    CHECK(refused.detail() == "`model.compute` may be f16 only on a GPU; got \"f16\" on the host: "
                              "use auto, int8, bf16 or "
                              "f32");
  }
  const auto f16 = resolve_compute("f16", "auto", {}, weights, chip).value();
  CHECK(f16.compute == type::f16);
  CHECK(f16.kv_type == kv::f16);
  const auto int8 = resolve_compute("int8", "auto", {}, weights, chip).value();
  CHECK(int8.compute == type::int8);
  CHECK(int8.kv_type == kv::f16);
  CHECK(resolve_compute("bf16", "f16", {}, weights, chip).value().kv_type == kv::f16);
}

TEST_CASE("w8a8 is for any device") {
  const one_matrix weights("Q4_0");
  for (const gpu::device_info* device : {&plain, &wide, &chip})
    CHECK(resolve_compute("w8a8", "auto", {}, weights, *device).value().compute == type::w8a8);
}

TEST_CASE("a folder's spec has the dtype that its config.json states") {
  const auto opened = folder::open(twill::test::golden_dir() + "/llama-tiny-fp16").value();
  const auto stated = [&](const char* key, const twill::value& word) {
    auto members = *opened->config().as_object();
    std::erase_if(members, [](const auto& m) { return m.first == "torch_dtype"; });
    members.emplace_back(key, word);
    return families::spec_of(twill::value(members), *opened->weights()).value().stated_type;
  };
  for (const char* key : {"torch_dtype", "dtype"}) {
    CHECK(stated(key, "float16") == kv::f16);
    CHECK(stated(key, "bfloat16") == kv::bf16);
    CHECK(stated(key, "float32") == kv::f32);
    CHECK(stated(key, "float8_e4m3fn") == std::nullopt);
    CHECK(stated(key, 16) == std::nullopt);
  }
  CHECK(stated("other", "float16") == std::nullopt);
  // Qwen's first generation states its dtype by booleans.
  CHECK(stated("fp16", true) == kv::f16);
  CHECK(stated("bf16", true) == kv::bf16);
  CHECK(stated("fp16", false) == std::nullopt);
  CHECK(stated("bf16", "true") == std::nullopt);
}
