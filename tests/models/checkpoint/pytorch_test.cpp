#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "models/checkpoint/pytorch/read.hpp"
#include "models/checkpoint/pytorch/unpickle.hpp"
#include "models/checkpoint/pytorch/zip.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"

using namespace twill::models;

namespace {

using floats = std::vector<float>;

std::string golden(const std::string& name) {
  return twill::test::golden_dir() + "/pytorch/" + name;
}

void check_refused(const std::string& name, errc code, const std::string& words) {
  CAPTURE(name);
  tensor_table table;
  auto read = pytorch::read_into(table, golden(name));
  REQUIRE_FALSE(read.ok());
  CAPTURE(read.detail());
  CHECK(read.code() == code);
  CHECK(read.detail().find(words) != std::string::npos);
  CHECK(read.detail().find(golden(name)) == 0);
}

result<std::vector<pytorch::pickled_tensor>> unpickle(const std::string& bytes) {
  return pytorch::unpickle_tensors(std::as_bytes(std::span(bytes)));
}

void check_pickle(const std::string& bytes, errc code, const std::string& words) {
  auto read = unpickle(bytes);
  REQUIRE_FALSE(read.ok());
  CAPTURE(read.detail());
  CHECK(read.code() == code);
  CHECK(read.detail().find(words) != std::string::npos);
}

} // namespace

TEST_CASE("state dictionaries of both protocols yield their tensors") {
  const std::string name = GENERATE(as<std::string>{}, "good_protocol2.bin", "good_protocol4.bin");
  CAPTURE(name);
  tensor_table table;
  auto read = pytorch::read_into(table, golden(name));
  if (!read.ok()) FAIL(read.detail());
  CHECK(table.tensors().size() == 7);
  CHECK(table.find("matrix")->shape == std::vector<std::int64_t>{2, 3});
  CHECK(table.vector("matrix").value() == floats{1, 2, 3, 4, 5, 6});
  CHECK(table.vector("tied").value() == table.vector("matrix").value());
  CHECK(table.vector("view").value() == floats{5, 6});
  CHECK(table.vector("scalar").value() == floats{3});
  CHECK(table.vector("halves").value() == floats{0.5f, -2, 65504, 0});
  CHECK(table.vector("brains").value() == floats{1, -2.5f, 0, 2});
  CHECK(table.find("longs")->type == "I64");
  CHECK(table.find("longs")->bytes == 24);
  float last = 0;
  std::memcpy(&last, static_cast<const float*>(table.matrix("matrix").value().dense_row(1)) + 2,
              sizeof last);
  CHECK(last == 6);
}

TEST_CASE("parameters count as their tensors, and hundreds of names find their memos") {
  tensor_table table;
  REQUIRE(pytorch::read_into(table, golden("parameters.bin")).ok());
  REQUIRE(pytorch::read_into(table, golden("many.bin")).ok());
  CHECK(table.vector("matrix").value() == floats{1, 2, 3, 4, 5, 6});
  CHECK(table.vector("layer.299.weight").value() == floats{1, 2, 3, 4, 5, 6});
  CHECK(table.tensors().size() == 301);
}

TEST_CASE("anything but tensors is refused by name and never executed") {
  check_refused("calls_system.bin", errc::unsupported, "asks for `posix.system`");
  check_refused("calls_eval.bin", errc::unsupported, "asks for `builtins.eval`");
  check_refused("quantised.bin", errc::unsupported, "`torch._utils._rebuild_qtensor`");
  check_refused("unknown_storage.bin", errc::unsupported, "`torch.QInt8Storage`");
  check_refused("nested.bin", errc::unsupported, "entry `model` must be a tensor");
  check_refused("number.bin", errc::unsupported, "entry `epoch` must be a tensor");
  check_refused("list.bin", errc::unsupported, "dictionary of tensors");
}

TEST_CASE("tensors that their storage does not hold as they are, are refused") {
  check_refused("transposed.bin", errc::unsupported, "its strides are (1, 3)");
  check_refused("repeated_rows.bin", errc::unsupported, "its strides are (0, 1)");
  check_refused("past_storage.bin", errc::bad_format, "passes its storage of 6 values");
  check_refused("negative_offset.bin", errc::bad_format, "from value -1");
  check_refused("huge_shape.bin", errc::bad_format, "impossible");
  check_refused("short_storage.bin", errc::bad_format, "should hold 6 values, got 5");
  check_refused("missing_storage.bin", errc::bad_format, "`data/0` is not in the archive");
}

TEST_CASE("archives of another format are refused clearly") {
  check_refused("legacy.bin", errc::unsupported, "before 1.6");
  check_refused("deflated.bin", errc::unsupported, "it is compressed");
  check_refused("big_endian.bin", errc::unsupported, "big-endian");
  check_refused("no_pickle.bin", errc::bad_format, "no data.pkl");
  check_refused("../smollm2/chat.json", errc::bad_format, "zip archive");
}

TEST_CASE("broken pickles end in an error") {
  using namespace std::string_literals;
  check_pickle("", errc::bad_format, "ends inside an opcode");
  check_pickle("\x80\x02"s, errc::bad_format, "ends inside an opcode");
  check_pickle("\x80\x00."s, errc::unsupported, "protocol must be 2 to 5, got 0");
  check_pickle("\x80\x02."s, errc::bad_format, "nothing on the stack");
  check_pickle("\x80\x02}}."s, errc::bad_format, "more than one object");
  check_pickle("\x80\x02u."s, errc::bad_format, "no mark");
  check_pickle("\x80\x02}(K\x01u."s, errc::bad_format, "no value");
  check_pickle("\x80\x02}h\x05."s, errc::bad_format, "memo 5");
  check_pickle("\x80\x02X\xff\xff\xff\xff"s, errc::bad_format, "ends inside");
  check_pickle("\x80\x02"
               "ccollections"s,
               errc::bad_format, "ends inside a name");
  check_pickle("\x80\x02"
               "cos\nsystem\n."s,
               errc::unsupported, "`os.system`");
  check_pickle("\x80\x02i."s, errc::unsupported, "opcode 105 at byte 2");
  check_pickle("\x80\x02K\x01Q."s, errc::bad_format, "persistent id");
  check_pickle("\x80\x02K\x01)R."s, errc::bad_format, "REDUCE");
  check_pickle("\x80\x02"
               "ctorch\nFloatStorage\n)R."s,
               errc::bad_format, "storage type is called");
  check_pickle("\x80\x02}K\x01K\x02s."s, errc::bad_format, "name is not text");
  CHECK(unpickle("\x80\x02}."s).value().empty());
}

TEST_CASE("a pickle of nothing but new objects is bounded") {
  const std::string objects(pytorch::max_objects + 10, '}');
  check_pickle("\x80\x02" + objects, errc::unsupported, "objects");
}

TEST_CASE("zip64 archives are read") {
  // One stored entry "a/b" of 3 bytes whose sizes and offset are only in zip64 fields.
  const auto u16 = [](unsigned n) {
    return std::string{static_cast<char>(n & 0xff), static_cast<char>(n >> 8)};
  };
  const auto u32 = [&](unsigned n) { return u16(n & 0xffff) + u16(n >> 16); };
  const auto u64 = [&](unsigned n) { return u32(n) + u32(0); };
  const unsigned none = 0xffffffff;
  const std::string local = "PK\3\4" + u16(45) + std::string(12, '\0') + u32(none) + u32(none) +
                            u16(3) + u16(0) + "a/bxyz";
  const auto archive = [&](unsigned at, unsigned bytes) {
    const std::string extra = u16(1) + u16(24) + u64(bytes) + u64(bytes) + u64(at);
    const std::string record = "PK\1\2" + u16(45) + u16(45) + std::string(12, '\0') + u32(none) +
                               u32(none) + u16(3) + u16(28) + u16(0) + std::string(8, '\0') +
                               u32(none) + "a/b" + extra;
    const std::string end64 = "PK\6\6" + u64(44) + u16(45) + u16(45) + u32(0) + u32(0) + u64(1) +
                              u64(1) + u64(static_cast<unsigned>(record.size())) +
                              u64(static_cast<unsigned>(local.size()));
    const std::string locator =
        "PK\6\7" + u32(0) + u64(static_cast<unsigned>(local.size() + record.size())) + u32(1);
    const std::string end =
        "PK\5\6" + u16(0) + u16(0) + u16(0xffff) + u16(0xffff) + u32(none) + u32(none) + u16(0);
    return local + record + end64 + locator + end;
  };
  const auto read = [](const std::string& bytes) {
    return pytorch::read_zip(std::as_bytes(std::span(bytes)));
  };
  const std::string good = archive(0, 3);
  const auto entries = read(good);
  if (!entries.ok()) FAIL(entries.detail());
  REQUIRE(entries.value().size() == 1);
  CHECK(entries.value()[0].name == "a/b");
  CHECK(entries.value()[0].bytes.size() == 3);
  CHECK(std::memcmp(entries.value()[0].bytes.data(), "xyz", 3) == 0);
  CHECK(read(archive(0, 4000)).detail().find("passes the end") != std::string::npos);
  CHECK(read(archive(1, 3)).detail().find("is not where") != std::string::npos);
  CHECK(read(archive(none, 3)).code() == errc::bad_format);
}
