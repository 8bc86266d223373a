// Weights rounded to 8 bits, compared with the rounding rule; and which tensors of a model are
// rounded.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "models/compute.hpp"
#include "models/decoder/projection.hpp"
#include "models/decoder/w8a8_weights.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/decoder_runner.hpp"
#include "tests/models/support/golden_folder.hpp"

using namespace twill::models;
namespace gpu = twill::gpu;
namespace test = twill::test;

namespace {

/// Matrices in memory: of f32, or of 4-bit codes.
class matrices final : public checkpoint {
public:
  void add(const std::string& name, std::int64_t rows, std::int64_t cols,
           std::vector<float> values) {
    values_[name] = std::move(values);
    infos_.push_back({name, {rows, cols}, "F32", rows * cols * 4});
  }
  void order(const std::string& name, std::vector<std::int32_t> columns) {
    orders_[name] = std::make_shared<const std::vector<std::int32_t>>(std::move(columns));
  }
  void make_4_bit(const std::string& name, std::int32_t group) {
    four_bit_ = name;
    four_bit_group_ = group;
  }
  static float four_bit_scale(std::int64_t g) { return g % 3 == 1 ? -0.03F : 0.25F; }
  static float four_bit_offset(std::int64_t g) { return g % 3 == 2 ? 0 : -3; }

  std::vector<tensor_info> tensors() const override { return infos_; }
  const tensor_info* find(std::string_view name) const override {
    const auto at = std::find_if(infos_.begin(), infos_.end(),
                                 [&](const tensor_info& t) { return t.name == name; });
    return at == infos_.end() ? nullptr : &*at;
  }
  result<gpu::weight_source> matrix(std::string_view name) const override {
    const tensor_info* info = find(name);
    if (info == nullptr) return failure{errc::missing_tensor, std::string(name)};
    gpu::weight_source s;
    s.rows = info->shape[0];
    s.cols = info->shape[1];
    const std::vector<float>& values = values_.at(info->name);
    if (const auto columns = orders_.find(info->name); columns != orders_.end())
      s.column_order = columns->second;
    if (info->name != four_bit_) {
      s.dense_row = [&values, cols = s.cols](std::int64_t row) -> const void* {
        return values.data() + row * cols;
      };
      return s;
    }
    s.kind = gpu::weight_kind::grouped_u4;
    s.group = four_bit_group_;
    s.grouped = [&values, cols = s.cols, n = s.group](std::int64_t row,
                                                      const gpu::grouped_row& out) {
      for (std::int64_t c = 0; c < cols; ++c) {
        out.codes[c] = static_cast<std::uint8_t>(values[row * cols + c]);
        out.scales[c / n] = four_bit_scale(c / n);
        out.offsets[c / n] = four_bit_offset(c / n);
      }
    };
    return s;
  }
  result<std::vector<float>> vector(std::string_view name) const override {
    return failure{errc::missing_tensor, std::string(name)};
  }

private:
  std::vector<tensor_info> infos_;
  std::map<std::string, std::vector<float>> values_;
  std::map<std::string, std::shared_ptr<const std::vector<std::int32_t>>> orders_;
  std::string four_bit_;
  std::int32_t four_bit_group_ = 32;
};

std::vector<float> normal_values(std::int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.05F);
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& v : values)
    v = normal(random);
  return values;
}

/// Checks that every value differs by half a unit at most from the value before rounding. A unit is
/// the largest magnitude of the value's group / 127. With grouped_u4_as_u8, the codes stay 4-bit
/// and a rounded factor and base turn each of them into an 8-bit code, so that a value may differ
/// by another 1/32 of a unit.
void check_rounded(const gpu::weight_source& s, const std::vector<float>& values) {
  const bool keeps_codes = s.kind == gpu::weight_kind::grouped_u4_as_u8;
  const auto group = static_cast<std::size_t>(s.group), cols = static_cast<std::size_t>(s.cols);
  std::vector<std::uint8_t> codes(cols);
  std::vector<float> scales(cols / group), offsets(cols / group);
  std::vector<std::uint16_t> factors(cols), bases(cols);
  const auto code_of = [&](std::size_t c) {
    if (!keeps_codes) return int{codes[c]};
    const std::size_t line = c / static_cast<std::size_t>(s.code_group);
    return static_cast<std::uint16_t>(factors[line] * codes[c] + bases[line]) / 256;
  };
  for (std::int64_t row = 0; row < s.rows; ++row) {
    s.grouped(row, {codes.data(), scales.data(), offsets.data(), factors.data(), bases.data()});
    const float* v = values.data() + row * s.cols;
    for (std::size_t g = 0; g < cols / group; ++g) {
      double top = 0;
      for (std::size_t c = g * group; c < (g + 1) * group; ++c)
        top = std::max(top, std::abs(double{v[c]}));
      REQUIRE(scales[g] >= top / 127 * (1 - 1e-6));
      REQUIRE(scales[g] <= top / 127 * 1.001);
      for (std::size_t c = g * group; c < (g + 1) * group; ++c) {
        const double decoded = double{scales[g]} * code_of(c) + offsets[g];
        REQUIRE(std::abs(decoded - v[c]) <= scales[g] * (keeps_codes ? 0.5 + 1.0 / 32 : 0.5001));
      }
    }
  }
}

} // namespace

TEST_CASE("matrices are rounded to 8 bits in the widest groups that divide their columns") {
  const struct {
    std::int64_t cols;
    std::int32_t group;  ///< 0 for a matrix that is not rounded
    std::int32_t of_gpu; ///< the group for a GPU's kernels
  } cases[] = {{576, 192, 192}, {1536, 256, 256}, {256, 256, 256}, {13696, 128, 128},
               {896, 224, 128}, {640, 160, 128},  {320, 160, 64},  {544, 32, 32},
               {40, 40, 40},    {264, 88, 88},    {7, 0, 0}};
  for (const auto& [cols, group, of_gpu] : cases) {
    CAPTURE(cols);
    const auto source = std::make_shared<matrices>();
    const auto values = normal_values(3 * cols, 1);
    source->add("w", 3, cols, values);
    const auto rounded = rounded_to_8_bits(source, {}, w8a8_kernels::host);
    const auto s = rounded->matrix("w");
    REQUIRE(s.ok());
    CHECK(s.value().group == group);
    CHECK(rounded->find("w")->type == (group > 0 ? "INT8" : "F32"));
    if (group == 0) continue;
    CHECK(rounded->find("w")->bytes == 3 * (cols + 2 * (cols / group)));
    check_rounded(s.value(), values);
    const auto wide = rounded_to_8_bits(source, {}, w8a8_kernels::gpu)->matrix("w").value();
    CHECK(wide.group == of_gpu);
    check_rounded(wide, values);
  }
}

TEST_CASE("4-bit weights are rounded by the values they stand for, in their own column order") {
  const struct {
    std::int64_t cols;
    std::int32_t group, rounded; ///< `rounded`: group of the result; codes stay if `kept`
    bool kept;
  } cases[] = {{576, 32, 192, true},    {1536, 128, 256, true}, {256, 64, 256, true},
               {13696, 128, 128, true}, {192, 96, 192, true},   {64, 16, 64, false},
               {32, 32, 32, false},     {544, 32, 32, false}};
  for (const auto& [cols, group, rounded, kept] : cases) {
    CAPTURE(cols, group);
    const auto source = std::make_shared<matrices>();
    std::vector<float> codes(static_cast<std::size_t>(4 * cols)), values;
    for (std::size_t i = 0; i < codes.size(); ++i) {
      codes[i] = static_cast<float>(i * 7 % 16);
      const auto g = static_cast<std::int64_t>(i) % cols / group;
      values.push_back(codes[i] * matrices::four_bit_scale(g) + matrices::four_bit_offset(g));
    }
    source->add("w", 4, cols, codes);
    source->make_4_bit("w", group);
    std::vector<std::int32_t> backwards(static_cast<std::size_t>(cols));
    for (std::size_t c = 0; c < backwards.size(); ++c)
      backwards[c] = static_cast<std::int32_t>(backwards.size() - 1 - c);
    source->order("w", backwards);
    const auto s = rounded_to_8_bits(source, {}, w8a8_kernels::host)->matrix("w");
    REQUIRE(s.ok());
    CHECK(s.value().group == rounded);
    CHECK(s.value().kind ==
          (kept ? gpu::weight_kind::grouped_u4_as_u8 : gpu::weight_kind::grouped_u8));
    check_rounded(s.value(), values);
    REQUIRE(s.value().column_order != nullptr);
    CHECK(*s.value().column_order == backwards);
    const auto wide = rounded_to_8_bits(source, {}, w8a8_kernels::gpu)->matrix("w").value();
    CHECK(wide.kind == gpu::weight_kind::grouped_u8);
    check_rounded(wide, values);
    CHECK(*wide.column_order == backwards);
  }
}

TEST_CASE("groups of zeros, tiny and huge values survive; what is not finite is refused by name") {
  auto& dev = test::shared_device();
  for (const float top : {0.0F, 1e-38F, 1e-25F, 1e20F}) {
    CAPTURE(top);
    const auto source = std::make_shared<matrices>();
    std::vector<float> values(64, 0.0F);
    values[5] = top;
    values[6] = -top;
    source->add("w", 1, 64, values);
    const auto s = rounded_to_8_bits(source, {}, w8a8_kernels::host)->matrix("w");
    REQUIRE(s.ok());
    std::vector<std::uint8_t> codes(64);
    float scale = -1, offset = 0;
    s.value().grouped(0, {codes.data(), &scale, &offset});
    CHECK(scale * codes[5] + offset == Approx(top).margin(1e-30).epsilon(0.005));
    CHECK(scale * codes[6] + offset == Approx(-top).margin(1e-30).epsilon(0.005));
    CHECK(scale * codes[7] + offset == 0);
    CHECK(gpu::pack(dev, s.value(), "w").ok());
  }
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const auto source = std::make_shared<matrices>();
    std::vector<float> values(64, 0.5F);
    values[40] = bad;
    source->add("w", 1, 64, values);
    const auto packed = gpu::pack(
        dev, rounded_to_8_bits(source, {}, w8a8_kernels::host)->matrix("w").value(), "the w");
    REQUIRE_FALSE(packed.ok());
    CHECK(packed.detail() == "the w: every value must be finite");
  }
}

TEST_CASE("w8a8 rounds linear layers and the head, not what is only looked up") {
  const auto kinds_of = [](const std::string& folder) {
    const test::golden_folder c(folder);
    const auto weights = weights_for(gpu::compute_type::w8a8, c.spec, c.weights, {});
    std::map<std::string, std::string> kinds;
    for (const tensor_info& t : weights->tensors())
      kinds[t.name] = t.type;
    return kinds;
  };
  auto llama = kinds_of("llama-tiny-fp16"); // a head of its own
  CHECK(llama.at("model.embed_tokens.weight") == "F16");
  CHECK(llama.at("model.layers.0.mlp.down_proj.weight") == "INT8");
  CHECK(llama.at("model.norm.weight") == "F16");
  CHECK(llama.at("lm_head.weight") == "INT8");
  auto tied = kinds_of("llama3-style-tied-bf16");
  CHECK(tied.at("model.embed_tokens.weight") == "INT8");
  auto opt = kinds_of("opt-tiny-fp32");
  CHECK(opt.at("model.decoder.embed_positions.weight") == "F32");
  CHECK(opt.at("model.decoder.layers.0.fc1.weight") == "INT8");

  const test::golden_folder c("llama-tiny-gptq");
  gpu::device_info chip;
  chip.multiplies_f16 = true; // stands for a GPU, which has no kernels for grouped_u4_as_u8
  for (const auto& [device, kind] :
       {std::pair(gpu::device_info{}, gpu::weight_kind::grouped_u4_as_u8),
        std::pair(chip, gpu::weight_kind::grouped_u8)}) {
    const auto weights = weights_for(gpu::compute_type::w8a8, c.spec, c.weights, device);
    CHECK(weights->matrix("model.layers.0.mlp.down_proj.weight").value().kind == kind);
  }
  CHECK(weights_for(gpu::compute_type::int8, c.spec, c.weights, {}) == c.weights);
}

TEST_CASE("codes of every kind are multiplied in int8 under w8a8, also where they are widened") {
  for (const gpu::weight_kind kind : {gpu::weight_kind::grouped_u4, gpu::weight_kind::grouped_u8,
                                      gpu::weight_kind::grouped_u4_as_u8})
    CHECK(compute_for(kind, gpu::compute_type::w8a8) == gpu::compute_type::int8);
  CHECK(compute_for(gpu::weight_kind::f16, gpu::compute_type::w8a8) == gpu::compute_type::f32);
}
