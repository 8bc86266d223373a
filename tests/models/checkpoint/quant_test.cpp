#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu/linear/linear.hpp"
#include "models/checkpoint/folder.hpp"
#include "models/checkpoint/half.hpp"
#include "models/checkpoint/safetensors/read.hpp"
#include "tests/catch.hpp"
#include "tests/gpu/tested_device.hpp"
#include "tests/models/support/quantised_matrix.hpp"
#include "tests/models/support/temp_folder.hpp"
#include "tests/paths.hpp"

using namespace twill::models;
namespace gpu = twill::gpu;
namespace test = twill::test;
using test::raw_values;

namespace {

/// Reads the matrix row by row and puts its columns back in order. // (rows, cols)
std::vector<double> read_rows(const gpu::weight_source& m) {
  std::vector<double> all(static_cast<std::size_t>(m.rows * m.cols));
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(m.cols));
  std::vector<float> scales(static_cast<std::size_t>(m.cols / m.group)), offsets(scales.size());
  for (std::int64_t r = 0; r < m.rows; ++r) {
    m.grouped(r, {codes.data(), scales.data(), offsets.data()});
    for (std::size_t p = 0; p < codes.size(); ++p) {
      const std::size_t g = p / static_cast<std::size_t>(m.group);
      const std::size_t c = m.column_order ? static_cast<std::size_t>((*m.column_order)[p]) : p;
      all[static_cast<std::size_t>(r * m.cols) + c] =
          double{scales[g] * static_cast<float>(codes[p]) + offsets[g]};
    }
  }
  return all;
}

gpu::device& shared_device() {
  static const std::unique_ptr<gpu::device> dev = test::open_tested({.threads = 2});
  return *dev;
}

/// Recovers the matrix by multiplying its packed copy with unit vectors. // (rows, cols)
std::vector<double> multiply_out(const gpu::weight_source& m) {
  gpu::device& dev = shared_device();
  auto packed = gpu::pack(dev, m, "test");
  if (!packed.ok()) FAIL(packed.detail());
  const auto rows = static_cast<std::size_t>(m.rows), cols = static_cast<std::size_t>(m.cols);
  auto x = dev.allocate(cols * cols * 4, "x").value();
  auto out = dev.allocate(cols * rows * 4, "out").value();
  std::vector<float> units(cols * cols, 0);
  for (std::size_t c = 0; c < cols; ++c)
    units[c * cols + c] = 1;
  dev.upload(x.data(), units.data(), x.bytes());
  gpu::linear(dev, {.x = gpu::view_2d(x.data(), gpu::dtype::f32, m.cols, m.cols),
                    .weights = &packed.value(),
                    .out = gpu::view_2d(out.data(), gpu::dtype::f32, m.cols, m.rows)});
  std::vector<float> multiplied(cols * rows);
  dev.download(multiplied.data(), out.data(), out.bytes());
  std::vector<double> all(rows * cols);
  for (std::size_t c = 0; c < cols; ++c)
    for (std::size_t r = 0; r < rows; ++r)
      all[r * cols + c] = double{multiplied[c * rows + r]};
  return all;
}

std::shared_ptr<const folder> open_good(const std::string& path) {
  auto opened = folder::open(path);
  if (!opened.ok()) FAIL(opened.detail());
  return opened.value();
}

void write_model(const test::temp_folder& f, const test::quantised_matrix& m) {
  test::safetensors_writer w;
  m.add_to(w, "a");
  f.write("config.json", m.config());
  f.write("model.safetensors", w.build());
}

void check_exact(const test::quantised_shape& s) {
  CAPTURE(s.rows, s.cols, s.bits, s.group, s.act_order, s.awq, s.zeros_less_one, s.symmetric);
  const test::quantised_matrix m(s);
  const test::temp_folder f;
  write_model(f, m);
  const auto opened = open_good(f.path());
  CHECK(opened->weights()->find("a.weight")->shape == std::vector<std::int64_t>{s.rows, s.cols});
  const auto source = opened->weights()->matrix("a.weight").value();
  CHECK(static_cast<bool>(source.column_order) == s.act_order);
  CHECK(read_rows(source) == m.values());
  CHECK(multiply_out(source) == m.values());
}

} // namespace

TEST_CASE("GPTQ of every width, group size and order is exactly scale * (code - zero)") {
  unsigned seed = 0;
  for (const int bits : {4, 8})
    for (const std::int64_t group : {32, 64, 128, -1})
      for (const bool act_order : {false, true}) {
        if (group < 0 && act_order) continue;
        check_exact({.rows = 48,
                     .cols = 256,
                     .bits = bits,
                     .group = group,
                     .act_order = act_order,
                     .seed = ++seed});
      }
  check_exact({.rows = 48, .cols = 256, .zeros_less_one = false});
  check_exact({.rows = 48, .cols = 256, .symmetric = true});
}

TEST_CASE("GPTQ matrices of odd sizes, with a short last group, are exact") {
  check_exact({.rows = 8, .cols = 32});
  check_exact({.rows = 136, .cols = 64});
  check_exact({.rows = 264, .cols = 96, .act_order = true});
  check_exact({.rows = 24, .cols = 200, .group = 128});
  check_exact({.rows = 24, .cols = 200, .group = 64, .act_order = true});
  check_exact({.rows = 12, .cols = 136, .bits = 8, .group = 32});
}

TEST_CASE("AWQ matrices are exactly scale * (code - zero)") {
  for (const std::int64_t group : {32, 64, 128, -1})
    check_exact({.rows = 48, .cols = 256, .group = group, .awq = true});
  check_exact({.rows = 136, .cols = 64, .awq = true});
  check_exact({.rows = 8, .cols = 160, .group = 64, .awq = true});
}

TEST_CASE("fused quantised matrices are exact across their borders") {
  const test::quantised_matrix a({.rows = 48, .cols = 64, .seed = 1});
  const test::quantised_matrix b({.rows = 16, .cols = 64, .seed = 2});
  const test::quantised_matrix c({.rows = 160, .cols = 64, .seed = 3});
  const test::temp_folder f;
  test::safetensors_writer w;
  a.add_to(w, "a");
  b.add_to(w, "b");
  c.add_to(w, "c");
  f.write("config.json", a.config());
  f.write("model.safetensors", w.build());
  const auto opened = open_good(f.path());
  std::vector<gpu::weight_source> sources;
  std::vector<double> expected;
  for (const auto& [name, m] : {std::pair{"a.weight", &a}, {"b.weight", &b}, {"c.weight", &c}}) {
    sources.push_back(opened->weights()->matrix(name).value());
    const std::vector<double> values = m->values();
    expected.insert(expected.end(), values.begin(), values.end());
  }
  const auto fused = gpu::stack_rows(sources);
  REQUIRE(fused.has_value());
  CHECK(static_cast<bool>(fused->grouped_panels));
  CHECK(multiply_out(*fused) == expected);
}

TEST_CASE("every packed matrix of the golden folders packs to what its rows say") {
  const std::string name =
      GENERATE(as<std::string>{}, "baichuan2-13b-tiny-gptq", "baichuan2-13b-tiny-gptq-actorder",
               "llama-tiny-gptq", "mistral-tiny-awq");
  CAPTURE(name);
  const auto f = open_good(test::golden_dir() + "/" + name);
  int packed = 0, reordered = 0;
  for (const tensor_info& t : f->weights()->tensors()) {
    if (t.type != f->quantization()) continue;
    CAPTURE(t.name);
    const auto source = f->weights()->matrix(t.name).value();
    CHECK(read_rows(source) == multiply_out(source));
    ++packed;
    reordered += source.column_order ? 1 : 0;
  }
  CHECK(packed >= 10);
  CHECK((reordered > 0) == (name.find("actorder") != std::string::npos));
}

TEST_CASE("parts are hidden, plain tensors and biases shown, all-zero biases dropped") {
  const test::quantised_matrix m({.rows = 16, .cols = 32});
  const test::temp_folder f;
  test::safetensors_writer w;
  m.add_to(w, "a");
  w.add("a.bias", "F16", {16}, std::string(32, '\0'));
  m.add_to(w, "b");
  w.add("b.bias", "F16", {16}, std::string(30, '\0') + "\x01\x3c");
  w.add("norm.weight", "F16", {1}, std::string("\0\x3c", 2));
  w.add("c.bias", "F16", {1}, std::string(2, '\0'));
  f.write("config.json", m.config());
  f.write("model.safetensors", w.build());
  const auto weights = open_good(f.path())->weights();
  CHECK(weights->tensors().size() == 5);
  for (const char* name : {"a.qweight", "a.qzeros", "a.scales", "a.g_idx", "a.bias", "b.scales"}) {
    CHECK(weights->find(name) == nullptr);
    CHECK(weights->matrix(name).code() == errc::missing_tensor);
    CHECK(weights->vector(name).code() == errc::missing_tensor);
  }
  CHECK(weights->vector("b.bias").value().back() == widen_f16(0x3c01));
  CHECK(weights->vector("c.bias").ok());
  CHECK(weights->find("b.weight")->type == "GPTQ-4");
  CHECK(weights->vector("b.weight").code() == errc::bad_tensor);
  weights->release("b.weight");
  CHECK(read_rows(weights->matrix("b.weight").value()) == m.values());
}

TEST_CASE(
    "a folder's quantize_config.json or quant_config.json is read when config.json is silent") {
  const test::quantised_matrix gptq({.rows = 16, .cols = 64, .group = 64});
  const test::temp_folder f;
  write_model(f, gptq);
  f.write("config.json", "{}");
  CHECK(folder::open(f.path()).code() == errc::bad_metadata);
  f.write("quantize_config.json", R"({"bits": 4, "group_size": 64, "desc_act": false})");
  CHECK(read_rows(open_good(f.path())->weights()->matrix("a.weight").value()) == gptq.values());
  f.remove("quantize_config.json");
  const test::quantised_matrix awq({.rows = 16, .cols = 64, .group = 64, .awq = true});
  write_model(f, awq);
  f.write("config.json", "{}");
  f.write("quant_config.json", R"({"w_bit": 4, "q_group_size": 64, "version": "GEMM"})");
  CHECK(read_rows(open_good(f.path())->weights()->matrix("a.weight").value()) == awq.values());
}

TEST_CASE("quantization that twill does not read is refused by name") {
  const test::quantised_matrix m({.rows = 16, .cols = 32});
  const test::temp_folder f;
  write_model(f, m);
  const auto refused = [&](const std::string& object, errc code, const std::string& words) {
    f.write("config.json", R"({"quantization_config": )" + object + "}");
    auto opened = folder::open(f.path());
    REQUIRE_FALSE(opened.ok());
    CAPTURE(opened.detail());
    CHECK(opened.code() == code);
    CHECK(opened.detail().find(words) != std::string::npos);
  };
  refused(R"({"quant_method": "fp8"})", errc::unsupported, "gptq or awq, got `fp8`");
  refused(R"({"bits": 4, "group_size": 32})", errc::unsupported, "`quant_method`");
  refused("5", errc::bad_metadata, "object");
  const std::string gptq = R"({"quant_method": "gptq", )";
  refused(gptq + R"("bits": 3, "group_size": 32})", errc::unsupported, "4 or 8, got 3");
  refused(gptq + R"("bits": "4", "group_size": 32})", errc::bad_metadata, "`bits`");
  refused(gptq + R"("bits": 4})", errc::bad_metadata, "`group_size`");
  refused(gptq + R"("bits": 4, "group_size": 0})", errc::bad_metadata, "got 0");
  refused(gptq + R"("bits": 4, "group_size": 32, "checkpoint_format": "marlin"})",
          errc::unsupported, "`marlin`");
  refused(R"({"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemv"})",
          errc::unsupported, "`gemv`");
}

TEST_CASE("parts that do not fit together are errors naming tensor, expected and found") {
  const test::quantised_matrix m({.rows = 16, .cols = 64});
  const auto with = [&](const std::string& name, const std::string& dtype,
                        const std::vector<std::int64_t>& shape, const std::string& bytes) {
    test::safetensors_writer good, w;
    m.add_to(good, "a");
    const test::temp_folder f;
    f.write("config.json", m.config());
    f.write("good", good.build());
    tensor_table table;
    REQUIRE(safetensors::read_into(table, f.file("good")).ok());
    for (const tensor_info& t : table.tensors()) {
      const auto stored = table.peek(t.name)->bytes;
      if (t.name != name)
        w.add(t.name, t.type, t.shape,
              std::string(reinterpret_cast<const char*>(stored.data()), stored.size()));
      else if (!dtype.empty())
        w.add(name, dtype, shape, bytes);
    }
    f.write("model.safetensors", w.build());
    auto opened = folder::open(f.path());
    if (!opened.ok()) return opened.detail();
    auto matrix = opened.value()->weights()->matrix("a.weight");
    return matrix.ok() ? std::string("accepted") : matrix.detail();
  };
  CHECK(with("", "", {}, "") == "accepted");
  CHECK(with("a.g_idx", "", {}, "") == "accepted");
  CHECK(with("a.scales", "", {}, "").find("`a.scales` is not in") != std::string::npos);
  CHECK(with("a.scales", "F16", {1, 16}, std::string(32, '\0')) ==
        "tensor `a.scales` must be F16 or BF16 (2, 16), got F16 (1, 16)");
  CHECK(with("a.scales", "F32", {2, 16}, std::string(128, '\0')) ==
        "tensor `a.scales` must be F16 or BF16 (2, 16), got F32 (2, 16)");
  CHECK(with("a.scales", "F16", {2, 16}, std::string(63, '\0') + "\x7c") ==
        "tensor `a.scales`: every scale must be finite");
  CHECK(with("a.qzeros", "I32", {2, 3}, std::string(24, '\0')) ==
        "tensor `a.qzeros` must be I32 (2, 2), got I32 (2, 3)");
  CHECK(with("a.g_idx", "I64", {64}, std::string(512, '\0')) ==
        "tensor `a.g_idx` must be I32 (64), got I64 (64)");
  CHECK(with("a.g_idx", "I32", {64}, raw_values(std::vector<std::int32_t>(64, 2))) ==
        "tensor `a.g_idx`: a group must be 0..1, got 2");
  std::vector<std::int32_t> uneven(64, 1);
  uneven[5] = 0;
  CHECK(with("a.g_idx", "I32", {64}, raw_values(uneven)) ==
        "tensor `a.g_idx`: groups must have multiples of 8 columns");
  CHECK(with("a.qweight", "I64", {8, 16}, std::string(1024, '\0')).find("must be I32 of 2") !=
        std::string::npos);
}

TEST_CASE("a matrix with a value that is not finite is refused when it is packed") {
  test::safetensors_writer w;
  for (const std::uint32_t bad : {0x7f800000U, 0xff800000U, 0x7fc00001U}) {
    std::vector<std::uint32_t> values(16 * 40, 0x3f800000U);
    values[16 * 40 - 1] = bad;
    w.add("f32-" + std::to_string(bad), "F32", {16, 40}, raw_values(values));
  }
  for (const char* type : {"F16", "BF16"}) {
    std::vector<std::uint16_t> values(17 * 24, 0x3c00);
    values[16 * 24] = *type == 'F' ? 0x7c00 : 0xff80;
    w.add(type, type, {17, 24}, raw_values(values));
  }
  w.add("finite", "F16", {1, 2}, raw_values(std::vector<std::uint16_t>{0x7bff, 0xfbff}));
  const test::temp_folder f;
  f.write("config.json", "{}");
  f.write("model.safetensors", w.build());
  const auto weights = open_good(f.path())->weights();
  for (const tensor_info& t : weights->tensors()) {
    CAPTURE(t.name);
    auto packed = gpu::pack(shared_device(), weights->matrix(t.name).value(), t.name.c_str());
    CHECK(packed.ok() == (t.name == "finite"));
    if (!packed.ok()) CHECK(packed.detail() == t.name + ": every value must be finite");
  }
}
