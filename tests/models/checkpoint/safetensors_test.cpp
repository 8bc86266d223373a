#include <cstdint>
#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

#include "models/checkpoint/mapped_file.hpp"
#include "models/checkpoint/safetensors/read.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/safetensors_writer.hpp"
#include "tests/models/support/temp_file.hpp"

using namespace twill::models;
namespace gpu = twill::gpu;
namespace test = twill::test;
using test::raw_values;
using test::safetensors_file;

namespace {

using floats = std::vector<float>;

void check_refused(const std::string& bytes, errc code, const std::string& words) {
  const test::temp_file file(bytes);
  tensor_table table;
  auto read = safetensors::read_into(table, file.path());
  REQUIRE_FALSE(read.ok());
  CAPTURE(read.detail());
  CHECK(read.code() == code);
  CHECK(read.detail().find(words) != std::string::npos);
  CHECK(read.detail().find(file.path()) == 0);
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& range) {
  return R"({"t":{"dtype":")" + dtype + R"(","shape":[)" + shape + R"(],"data_offsets":[)" + range +
         "]}}";
}

} // namespace

TEST_CASE("a mapped file that is shortened reads as zeros, and the fault is counted") {
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const test::temp_file file(std::string(4 * page, 'x'));
  const auto mapped = mapped_file::open(file.path());
  REQUIRE(mapped.ok());
  const auto bytes = mapped.value()->bytes();
  CHECK(bytes[4 * page - 1] == std::byte{'x'});
  const auto before = mapping_guard::faults();
  REQUIRE(::truncate(file.path().c_str(), static_cast<off_t>(page)) == 0);
  CHECK(bytes[0] == std::byte{'x'});
  CHECK(mapping_guard::faults() == before);
  CHECK(bytes[2 * page + 5] == std::byte{0});
  CHECK(bytes[4 * page - 1] == std::byte{0});
  CHECK(mapping_guard::faults() == before + 1);
  CHECK(bytes[0] == std::byte{'x'});
}

TEST_CASE("tensors of every element type and rank are listed with shape, type and bytes") {
  test::safetensors_writer w;
  w.add("f32", "F32", {2, 3}, raw_values(floats{1, 2, 3, 4, 5, 6}));
  w.add("odd", "U8", {3}, "abc");
  w.add("f16", "F16", {2}, raw_values(std::vector<std::uint16_t>{0x3c00, 0xc100}));
  w.add("bf16", "BF16", {1, 2}, raw_values(std::vector<std::uint16_t>{0x3f80, 0xc020}));
  w.add("scalar", "F32", {}, raw_values(floats{7}));
  w.add("none", "F32", {0, 5}, "");
  w.add("i64", "I64", {1}, raw_values(std::vector<std::int64_t>{5}));
  w.add("cube", "I32", {1, 2, 1}, raw_values(std::vector<std::int32_t>{1, 2}));
  for (const char* type : {"I8", "BOOL", "I16", "F64", "U64", "U32", "U16", "F8_E4M3"})
    w.add(type, type, {0}, "");
  const test::temp_file file(w.build());
  tensor_table table;
  REQUIRE(safetensors::read_into(table, file.path()).ok());
  CHECK(table.tensors().size() == 16);
  REQUIRE(table.find("cube") != nullptr);
  CHECK(table.find("cube")->shape == std::vector<std::int64_t>{1, 2, 1});
  CHECK(table.find("cube")->bytes == 8);
  CHECK(table.find("absent") == nullptr);

  CHECK(table.vector("f16").value() == floats{1, -2.5});
  CHECK(table.vector("bf16").value() == floats{1, -2.5});
  CHECK(table.vector("scalar").value() == floats{7});
  CHECK(table.vector("none").value().empty());
  const auto m = table.matrix("f32").value();
  CHECK(m.kind == gpu::weight_kind::f32);
  CHECK((m.rows == 2 && m.cols == 3));
  floats row(3);
  std::memcpy(row.data(), m.dense_row(1), 12);
  CHECK(row == floats{4, 5, 6});

  CHECK(table.matrix("i64").code() == errc::unsupported);
  CHECK(table.vector("cube").code() == errc::unsupported);
  CHECK(table.matrix("f16").code() == errc::bad_tensor);
  CHECK(table.matrix("absent").code() == errc::missing_tensor);
}

TEST_CASE("released tensors can be read again") {
  const floats values(100000, 1.5f);
  test::safetensors_writer w;
  w.add("a", "F32", {100, 1000}, raw_values(values));
  const test::temp_file file(w.build());
  tensor_table table;
  REQUIRE(safetensors::read_into(table, file.path()).ok());
  table.release("a");
  table.release("absent");
  CHECK(table.vector("a").value() == values);
}

TEST_CASE("a safetensors header that contradicts the file or the format is refused") {
  check_refused("abc", errc::bad_format, "header size");
  check_refused(raw_values(std::vector<std::uint64_t>{100}) + "{}", errc::bad_format,
                "passes the end");
  check_refused(raw_values(std::vector<std::uint64_t>{UINT64_MAX - 7}) + "{}", errc::bad_format,
                "passes the end");
  check_refused(safetensors_file("{\"t\":", ""), errc::bad_format, "header:1");
  check_refused(safetensors_file("[]", ""), errc::bad_format, "object");
  check_refused(safetensors_file("{}", "x"), errc::bad_format, "end at byte 0 of 1");
  check_refused(safetensors_file(R"({"t":5})", ""), errc::bad_format, "`dtype`");
  check_refused(safetensors_file(entry("F31", "1", "0,4"), "abcd"), errc::unsupported, "`F31`");
  check_refused(safetensors_file(entry("F32", "2", "0,4"), "abcd"), errc::bad_format,
                "shape (2) of F32 does not make 4 bytes");
  check_refused(safetensors_file(entry("F32", "-1", "0,4"), "abcd"), errc::bad_format, "`shape`");
  check_refused(safetensors_file(entry("F32", "1.0", "0,4"), "abcd"), errc::bad_format, "`shape`");
  check_refused(safetensors_file(entry("F32", "1", "0,5"), "abcd"), errc::bad_format, "0..5");
  check_refused(safetensors_file(entry("F32", "1", "4,0"), "abcd"), errc::bad_format, "4..0");
  check_refused(safetensors_file(entry("F32", "1", "0"), "abcd"), errc::bad_format, "two whole");
  check_refused(safetensors_file(entry("U8", "4294967296,4294967296", "0,0"), ""), errc::bad_format,
                "does not make 0 bytes");
}

TEST_CASE("safetensors with gaps or overlaps are refused") {
  const auto two = [](const std::string& a, const std::string& b) {
    return R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[)" + a +
           R"(]},"b":{"dtype":"U8","shape":[2],"data_offsets":[)" + b + "]}}";
  };
  check_refused(safetensors_file(two("0,2", "3,5"), "12345"), errc::bad_format,
                "tensor `b`: begins at byte 3, the tensor before ends at 2");
  check_refused(safetensors_file(two("0,2", "1,3"), "123"), errc::bad_format, "tensor `b`");
  check_refused(safetensors_file(two("0,2", "0,2"), "12"), errc::bad_format, "begins at byte 0");
  check_refused(safetensors_file(two("0,2", "2,4"), "12345"), errc::bad_format, "4 of 5");
  const test::temp_file backwards(safetensors_file(two("2,4", "0,2"), "1234"));
  tensor_table table;
  CHECK(safetensors::read_into(table, backwards.path()).ok());
}
