#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "models/checkpoint/gguf/file.hpp"
#include "models/checkpoint/half.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/gguf_writer.hpp"
#include "tests/models/support/temp_file.hpp"

using namespace twill::models;
namespace test = twill::test;
namespace gpu = twill::gpu;
using test::gguf_writer;
using test::half;
using test::raw;

namespace {

twill::models::result<std::shared_ptr<const gguf::file>> open_bytes(const std::string& bytes) {
  const test::temp_file file(bytes);
  return gguf::file::open(file.path());
}

std::shared_ptr<const gguf::file> open_good(const gguf_writer& w) {
  auto opened = open_bytes(w.build());
  if (!opened.ok()) FAIL(opened.detail());
  return opened.value();
}

void check_refused(const gguf_writer& w, errc code, const std::string& words) {
  auto opened = open_bytes(w.build());
  REQUIRE_FALSE(opened.ok());
  CAPTURE(opened.detail());
  CHECK(opened.code() == code);
  CHECK(opened.detail().find(words) != std::string::npos);
}

std::string floats(const std::vector<float>& values) {
  std::string bytes;
  for (const float v : values)
    bytes += raw(v);
  return bytes;
}

/// Reads one row through the weight source and multiplies its codes out.
std::vector<float> dequantise(const gpu::weight_source& m, std::int64_t row) {
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(m.cols));
  std::vector<float> scales(static_cast<std::size_t>(m.cols / m.group)), offsets(scales.size());
  m.grouped(row, {codes.data(), scales.data(), offsets.data()});
  std::vector<float> values;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const std::size_t g = i / static_cast<std::size_t>(m.group);
    values.push_back(scales[g] * static_cast<float>(codes[i]) + offsets[g]);
  }
  return values;
}

std::string random_bytes(std::mt19937& random, int n) {
  std::uniform_int_distribution<int> byte(0, 255);
  std::string bytes;
  for (int i = 0; i < n; ++i)
    bytes += static_cast<char>(byte(random));
  return bytes;
}

} // namespace

TEST_CASE("a GGUF file of version 2 or 3 yields its metadata with the right types") {
  const auto version = GENERATE(2U, 3U);
  gguf_writer w;
  w.version = version;
  w.add("u8", 0, raw(std::uint8_t{200}));
  w.add("i8", 1, raw(std::int8_t{-5}));
  w.add("u16", 2, raw(std::uint16_t{60000}));
  w.add("i16", 3, raw(std::int16_t{-300}));
  w.add_u32("u32", 4000000000U);
  w.add("i32", 5, raw(std::int32_t{-7}));
  w.add_f32("f32", 0.5f);
  w.add_bool("yes", true);
  w.add_string("text", "Grüße");
  w.add("u64", 10, raw(std::uint64_t{1} << 40));
  w.add("huge", 10, raw(~std::uint64_t{0}));
  w.add("i64", 11, raw(std::int64_t{-1} << 40));
  w.add("f64", 12, raw(0.1));
  w.add_strings("strings", {"a", "", "ccc"});
  w.add_ints("ints", {1, -2, 3});
  w.add_array("floats", 6, 2, raw(1.5f) + raw(-2.0f));
  w.add_array("bools", 7, 2, std::string("\1\0", 2));
  w.add_array("none", 8, 0, "");
  const auto file = open_good(w);
  const gguf::metadata& m = file->meta();
  CHECK(file->version() == version);
  CHECK(m.get_int("u8", 0, 255).value() == 200);
  CHECK(m.get_int("i8", -128, 127).value() == -5);
  CHECK(m.get_int("u16", 0, 65535).value() == 60000);
  CHECK(m.get_int("i16", -400, 0).value() == -300);
  CHECK(m.get_int("u32", 0, INT64_MAX).value() == 4000000000);
  CHECK(m.get_int("i32", -10, 10).value() == -7);
  CHECK(m.get_float("f32").value() == 0.5);
  CHECK(m.get_bool("yes").value());
  CHECK(m.get_string("text").value() == "Grüße");
  CHECK(m.get_int("u64", 0, INT64_MAX).value() == std::int64_t{1} << 40);
  CHECK(m.get_float("huge").value() == 0x1p64);
  CHECK(m.get_int("i64", INT64_MIN, 0).value() == -(std::int64_t{1} << 40));
  CHECK(m.get_float("f64").value() == 0.1);
  CHECK(*m.get_strings("strings").value() == std::vector<std::string>{"a", "", "ccc"});
  CHECK(*m.get_ints("ints").value() == std::vector<std::int64_t>{1, -2, 3});
  CHECK(*m.get_floats("floats").value() == std::vector<double>{1.5, -2.0});
  CHECK(*m.get_ints("bools").value() == std::vector<std::int64_t>{1, 0});
  CHECK(m.get_strings("none").value()->empty());
}

TEST_CASE("metadata getters name the key, the rule and what was found") {
  gguf_writer w;
  w.add_u32("count", 9);
  w.add_f32("nan", std::nanf(""));
  const auto file = open_good(w);
  const gguf::metadata& m = file->meta();
  CHECK(m.get_int("absent", 0, 1).code() == errc::missing_metadata);
  CHECK(m.get_int("count", 0, 8).detail() == "`count` must be in 0..8, got 9");
  CHECK(m.get_string("count").detail() == "`count` must be a string, got an integer");
  CHECK(m.get_string("count").code() == errc::bad_metadata);
  CHECK(m.get_float("nan").code() == errc::bad_metadata);
  CHECK(m.get_int_or("absent", 0, 1, 7).value() == 7);
  CHECK(m.get_string_or("count", "x").code() == errc::bad_metadata);
  CHECK(m.get_bool_or("absent", true).value());
  CHECK(m.get_strings("count").code() == errc::bad_metadata);
}

TEST_CASE("dense tensors are handed out as they lie in the file, shapes outermost first") {
  gguf_writer w;
  w.add_tensor("m32", {2, 3}, 0, floats({1, 2, 3, 4, 5, 6}));
  w.add_tensor("m16", {1, 2}, 1, raw(half(0.5f)) + raw(half(-2.0f)));
  w.add_tensor("mb16", {1, 2}, 30, raw(std::uint16_t{0x3fc0}) + raw(std::uint16_t{0xc000}));
  w.add_tensor("v16", {2}, 1, raw(half(0.25f)) + raw(half(-4.0f)));
  const auto file = open_good(w);
  REQUIRE(file->find("m32") != nullptr);
  CHECK(file->find("m32")->shape == std::vector<std::int64_t>{2, 3});
  CHECK(file->find("m32")->bytes == 24);
  CHECK(file->find("nothing") == nullptr);
  CHECK(file->tensors().size() == 4);
  const auto m32 = file->matrix("m32").value();
  CHECK(m32.kind == gpu::weight_kind::f32);
  CHECK(m32.rows == 2);
  CHECK(m32.cols == 3);
  CHECK(static_cast<const float*>(m32.dense_row(1))[2] == 6);
  CHECK(file->matrix("m16").value().kind == gpu::weight_kind::f16);
  const auto mb16 = file->matrix("mb16").value();
  CHECK(mb16.kind == gpu::weight_kind::bf16);
  CHECK(widen_bf16(static_cast<const std::uint16_t*>(mb16.dense_row(0))[0]) == 1.5f);
  CHECK(file->vector("v16").value() == std::vector<float>{0.25f, -4.0f});
  CHECK(file->vector("m32").value().size() == 6);
  CHECK(file->matrix("v16").code() == errc::bad_tensor);
  CHECK(file->matrix("nothing").code() == errc::missing_tensor);
}

TEST_CASE("grouped kinds dequantise exactly as their block definitions say") {
  std::mt19937 random(7);
  const float d0 = 0.125f, d1 = -0.75f, m1 = 3.5f;
  const std::string q0 = random_bytes(random, 16), q1 = random_bytes(random, 16),
                    q8 = random_bytes(random, 32);
  gguf_writer w;
  w.add_tensor("q4_0", {1, 64}, 2, raw(half(d0)) + q0 + raw(half(d1)) + q1);
  w.add_tensor("q4_1", {1, 64}, 3,
               raw(half(d0)) + raw(half(m1)) + q0 + raw(half(d1)) + raw(half(d0)) + q1);
  w.add_tensor("q8_0", {2, 32}, 8, raw(half(d1)) + q8 + raw(half(d0)) + q8);
  const auto file = open_good(w);
  const auto nibble = [](const std::string& q, int i) {
    const auto byte = static_cast<std::uint8_t>(q[static_cast<std::size_t>(i % 16)]);
    return static_cast<float>(i < 16 ? byte & 15 : byte >> 4);
  };
  const auto q4_0 = file->matrix("q4_0").value();
  CHECK(q4_0.kind == gpu::weight_kind::grouped_u4);
  CHECK(q4_0.group == 32);
  const auto v4_0 = dequantise(q4_0, 0);
  const auto v4_1 = dequantise(file->matrix("q4_1").value(), 0);
  const auto q8_0 = file->matrix("q8_0").value();
  CHECK(q8_0.kind == gpu::weight_kind::grouped_u8);
  const auto v8_0 = dequantise(q8_0, 0), v8_1 = dequantise(q8_0, 1);
  for (int i = 0; i < 32; ++i) {
    const auto u = static_cast<std::size_t>(i);
    CHECK(v4_0[u] == d0 * (nibble(q0, i) - 8));
    CHECK(v4_0[u + 32] == d1 * (nibble(q1, i) - 8));
    CHECK(v4_1[u] == d0 * nibble(q0, i) + m1);
    CHECK(v4_1[u + 32] == d1 * nibble(q1, i) + d0);
    CHECK(v8_0[u] == d1 * static_cast<float>(static_cast<std::int8_t>(q8[u])));
    CHECK(v8_1[u] == d0 * static_cast<float>(static_cast<std::int8_t>(q8[u])));
  }
  CHECK(file->vector("q8_0").code() == errc::unsupported);
}

TEST_CASE("half-precision widening is exact for every bit pattern") {
  for (std::uint32_t h = 0; h < 0x10000; ++h) {
    const int exponent = static_cast<int>(h >> 10) & 31, mantissa = static_cast<int>(h & 1023);
    const float wide = widen_f16(static_cast<std::uint16_t>(h));
    if (exponent == 31 && mantissa != 0) {
      REQUIRE(std::isnan(wide));
      continue;
    }
    float expected = exponent == 31 ? INFINITY
                     : exponent == 0
                         ? std::ldexp(static_cast<float>(mantissa), -24)
                         : std::ldexp(1.0f + static_cast<float>(mantissa) / 1024, exponent - 15);
    if ((h & 0x8000) != 0) expected = -expected;
    REQUIRE(std::bit_cast<std::uint32_t>(wide) == std::bit_cast<std::uint32_t>(expected));
  }
}

TEST_CASE("a kind that twill does not read is listed and refused by name") {
  gguf_writer w;
  w.add_tensor("k", {1, 256}, 23, std::string(144, 'x'));
  w.add_tensor("odd", {1, 4}, 999, "");
  const auto file = open_good(w);
  CHECK(file->find("k")->type == "IQ4_XS");
  const auto refused = file->matrix("k");
  CHECK(refused.code() == errc::unsupported);
  CHECK(refused.detail().find("`k` has kind IQ4_XS") != std::string::npos);
  CHECK(file->matrix("odd").detail().find("kind 999") != std::string::npos);
}

TEST_CASE("files that contradict the format are refused with the reason") {
  CHECK(gguf::file::open("/nonexistent/file.gguf").code() == errc::file_unreadable);
  CHECK(gguf::file::open("/tmp").code() == errc::file_unreadable);
  CHECK(open_bytes("").code() == errc::file_unreadable);
  CHECK(open_bytes("GGUF").code() == errc::bad_format);
  CHECK(open_bytes("not a model file at all").code() == errc::bad_format);

  gguf_writer w;
  SECTION("version 1") {
    w.version = 1;
    check_refused(w, errc::unsupported, "version must be 2 or 3, got 1");
  }
  SECTION("big-endian") {
    w.version = 0x03000000;
    check_refused(w, errc::unsupported, "big-endian");
  }
  SECTION("a string past the end") {
    w.add("key", 8, raw(std::uint64_t{1000}));
    check_refused(w, errc::bad_format, "`key`: the value passes the end");
  }
  SECTION("a string whose length wraps around") {
    w.add("key", 8, raw(~std::uint64_t{0}));
    check_refused(w, errc::bad_format, "passes the end");
  }
  SECTION("an array that would need more memory than the file has bytes") {
    w.add_array("key", 12, std::uint64_t{1} << 61, "12345678");
    check_refused(w, errc::bad_format, "values passes the end");
  }
  SECTION("an array of arrays") {
    w.add_array("key", 9, 1, std::string(20, '\0'));
    check_refused(w, errc::unsupported, "arrays of arrays");
  }
  SECTION("an unknown value type") {
    w.add("key", 13, "");
    check_refused(w, errc::bad_format, "value type 13");
  }
  SECTION("a bool that is neither 0 nor 1") {
    w.add("key", 7, "\2");
    check_refused(w, errc::bad_format, "must be 0 or 1, got 2");
  }
  SECTION("a key twice") {
    w.add_u32("key", 1);
    w.add_u32("key", 2);
    check_refused(w, errc::bad_format, "appears twice");
  }
  SECTION("an alignment that is no power of two") {
    w.add_u32("general.alignment", 48);
    check_refused(w, errc::bad_metadata, "power of two, got 48");
  }
  SECTION("an alignment of zero") {
    w.add_u32("general.alignment", 0);
    check_refused(w, errc::bad_metadata, "general.alignment");
  }
  SECTION("a tensor twice") {
    w.add_tensor("t", {1, 1}, 0, floats({1}));
    w.add_tensor("t", {1, 1}, 0, floats({1}));
    check_refused(w, errc::bad_format, "name appears twice");
  }
  SECTION("no dimensions") {
    w.add_tensor("t", {}, 0, floats({1}));
    check_refused(w, errc::bad_format, "dimensions must be 1..4, got 0");
  }
  SECTION("five dimensions") {
    w.add_tensor("t", {1, 1, 1, 1, 1}, 0, floats({1}));
    check_refused(w, errc::bad_format, "dimensions must be 1..4, got 5");
  }
  SECTION("a product of dimensions that wraps around") {
    w.add_tensor("t", {std::uint64_t{1} << 32, std::uint64_t{1} << 32}, 0, floats({1}));
    check_refused(w, errc::bad_format, "impossible");
  }
  SECTION("a zero dimension") {
    w.add_tensor("t", {0, 4}, 0, "");
    check_refused(w, errc::bad_format, "impossible");
  }
  SECTION("rows that are not whole blocks") {
    w.add_tensor("t", {1, 33}, 3, std::string(40, '\0'));
    check_refused(w, errc::bad_format, "multiple of 32 values, got 33");
  }
  SECTION("data past the end") {
    w.add_tensor("t", {64, 64}, 0, floats({1}));
    check_refused(w, errc::bad_format, "16384 bytes at offset 0 pass the end");
  }
  SECTION("an offset that wraps around") {
    w.add_tensor("a", {1, 8}, 0, floats({1, 2, 3, 4, 5, 6, 7, 8}));
    w.add_tensor_at("t", {1, 8}, 0, ~std::uint64_t{31});
    check_refused(w, errc::bad_format, "pass the end");
  }
  SECTION("an offset off the alignment") {
    w.add_tensor("a", {1, 8}, 0, floats({1, 2, 3, 4, 5, 6, 7, 8}));
    w.add_tensor_at("t", {1, 1}, 0, 4);
    check_refused(w, errc::bad_format, "multiple of 32, got 4");
  }
  SECTION("tensors that share bytes") {
    w.add_tensor("a", {1, 16}, 0, floats(std::vector<float>(16, 1.0f)));
    w.add_tensor_at("t", {1, 8}, 0, 32);
    check_refused(w, errc::bad_format, "`t`: overlaps tensor `a`");
  }
}

TEST_CASE("counts that the file cannot hold are refused before anything is allocated") {
  for (const std::uint64_t count :
       {std::uint64_t{1} << 20, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    const std::string rest(100, '\0');
    const auto tensors =
        open_bytes("GGUF" + raw(std::uint32_t{3}) + raw(count) + raw(std::uint64_t{0}) + rest);
    CHECK(tensors.code() == errc::bad_format);
    const auto pairs =
        open_bytes("GGUF" + raw(std::uint32_t{3}) + raw(std::uint64_t{0}) + raw(count) + rest);
    CHECK(pairs.code() == errc::bad_format);
  }
}
