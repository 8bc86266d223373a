// A model that is split into several GGUF files equals the model of the same tensors in one file.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "models/checkpoint/gguf/file.hpp"
#include "models/checkpoint/gguf/split_name.hpp"
#include "models/model.hpp"
#include "models/open/model_place.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/gguf_writer.hpp"
#include "tests/models/support/temp_folder.hpp"
#include "tests/paths.hpp"

using namespace twill::models;
namespace test = twill::test;
using test::raw;

namespace {

constexpr int n_tensors = 5;

std::string name_of(int tensor) {
  return "blk." + std::to_string(tensor) + ".ffn_up.weight";
}

void add_tensor(test::gguf_writer& w, int tensor) {
  std::string bytes;
  for (int i = 0; i < 64; ++i)
    bytes += raw(static_cast<float>(100 * tensor + i));
  w.add_tensor(name_of(tensor), {2, 32}, 0, bytes);
}

struct split_keys {
  std::uint16_t number = 0; ///< counts from 0
  std::uint16_t count = 3;
  std::int32_t tensors = n_tensors;
};

void add_split(test::gguf_writer& w, const split_keys& k) {
  w.add("split.no", 2, raw(k.number));
  w.add("split.count", 2, raw(k.count));
  w.add("split.tensors.count", 5, raw(k.tensors));
}

/// Part `number`, from 0. The first part has the metadata; the parts have 2, 1 and 2 tensors.
test::gguf_writer part(int number, split_keys keys) {
  test::gguf_writer w;
  if (number == 0) w.add_string("general.architecture", "llama");
  add_split(w, keys);
  const std::vector<int> tensors[] = {{0, 1}, {2}, {3, 4}};
  for (const int tensor : tensors[number])
    add_tensor(w, tensor);
  return w;
}

std::string part_name(int number) {
  return "tiny-0000" + std::to_string(number + 1) + "-of-00003.gguf";
}

void write_part(const test::temp_folder& at, int number) {
  at.write(part_name(number), part(number, {static_cast<std::uint16_t>(number)}).build());
}

void write_all(const test::temp_folder& at) {
  for (int number = 0; number < 3; ++number)
    write_part(at, number);
}

void check_refused(const test::temp_folder& at, errc code, const std::string& words) {
  for (int number = 0; number < 3; ++number) {
    if (!std::filesystem::exists(at.file(part_name(number)))) continue;
    CAPTURE(number);
    const auto opened = gguf::file::open(at.file(part_name(number)));
    REQUIRE_FALSE(opened.ok());
    CAPTURE(opened.detail());
    CHECK(opened.code() == code);
    CHECK(opened.detail().find(words) != std::string::npos);
  }
}

} // namespace

TEST_CASE("a split GGUF model is whole, whichever part is named") {
  const test::temp_folder at;
  write_all(at);
  for (int named = 0; named < 3; ++named) {
    CAPTURE(named);
    const auto opened = gguf::file::open(at.file(part_name(named)));
    INFO((opened.ok() ? "" : opened.detail()));
    REQUIRE(opened.ok());
    const gguf::file& file = *opened.value();
    CHECK(file.meta().has("general.architecture"));
    REQUIRE(file.files().size() == 3);
    for (int number = 0; number < 3; ++number)
      CHECK(file.files()[static_cast<std::size_t>(number)]->path() == at.file(part_name(number)));
    REQUIRE(file.tensors().size() == n_tensors);
    for (int tensor = 0; tensor < n_tensors; ++tensor) {
      CHECK(file.tensors()[static_cast<std::size_t>(tensor)].name == name_of(tensor));
      const auto source = file.matrix(name_of(tensor));
      REQUIRE(source.ok());
      const auto* row = static_cast<const float*>(source.value().dense_row(1));
      CHECK(row[3] == static_cast<float>(100 * tensor + 35));
      file.read_ahead(name_of(tensor));
      file.release(name_of(tensor));
      CHECK(row[3] == static_cast<float>(100 * tensor + 35));
    }
  }
}

TEST_CASE("parts of a GGUF model that do not fit together are refused by name") {
  const test::temp_folder at;
  write_all(at);
  const auto write = [&](int number, const test::gguf_writer& w) {
    at.write(part_name(number), w.build());
  };
  SECTION("a part is missing") {
    at.remove(part_name(1));
    check_refused(at, errc::file_unreadable,
                  part_name(1) + ": No such file or directory; this is part 2 of 3");
  }
  SECTION("the first part is missing") {
    at.remove(part_name(0));
    check_refused(at, errc::file_unreadable, "this is part 1 of 3 of a model in several files");
  }
  SECTION("a part has another's number") {
    write(1, part(1, {2}));
    check_refused(at, errc::bad_metadata, "part 3 of 3");
  }
  SECTION("a part is of a model in another number of parts") {
    write(2, part(2, {2, 4}));
    check_refused(at, errc::bad_metadata, "part 3 of 4");
  }
  SECTION("a part is no part") {
    test::gguf_writer w;
    add_tensor(w, 3);
    at.write(part_name(1), w.build());
    const auto opened = gguf::file::open(at.file(part_name(0)));
    CHECK(opened.code() == errc::bad_metadata);
    CHECK(opened.detail().find("its metadata say part 1 of 1") != std::string::npos);
  }
  SECTION("a number beyond the count") {
    write(1, part(1, {3}));
    check_refused(at, errc::bad_metadata, "`split.no` must be in 0..2");
  }
  SECTION("a number is missing") {
    test::gguf_writer w;
    w.add("split.count", 2, raw(std::uint16_t{3}));
    write(1, w);
    check_refused(at, errc::missing_metadata, "split.no");
  }
  SECTION("a tensor is in two parts") {
    test::gguf_writer w;
    add_split(w, {1});
    add_tensor(w, 0);
    write(1, w);
    check_refused(at, errc::bad_format, "the name appears twice");
  }
  SECTION("a tensor is missing") {
    test::gguf_writer w;
    add_split(w, {1});
    write(1, w);
    check_refused(at, errc::bad_format, "the parts must hold 5 tensors (`split.tensors.count`)");
  }
  SECTION("a part is cut off") {
    at.write(part_name(1), part(1, {1}).build().substr(0, 200));
    check_refused(at, errc::bad_format, part_name(1));
  }
  SECTION("a part has another name") {
    at.rename(part_name(1), "second.gguf");
    const auto opened = gguf::file::open(at.file("second.gguf"));
    CHECK(opened.code() == errc::bad_metadata);
    CHECK(opened.detail().find(
              "is part 2 of 3 of a model, so its name must be NAME-00002-of-00003.gguf") !=
          std::string::npos);
  }
}

TEST_CASE("a count of one part or none is one file, whatever its name") {
  for (const std::uint16_t count : {0, 1}) {
    test::gguf_writer w;
    add_split(w, {0, count, 1});
    add_tensor(w, 0);
    const test::temp_folder at;
    at.write("any.gguf", w.build());
    CHECK(gguf::file::open(at.file("any.gguf")).value()->tensors().size() == 1);
  }
}

TEST_CASE("names of parts are read and written as llama.cpp does") {
  const auto name = gguf::parse_split_name("/m/big-q4-00002-of-00010.gguf");
  REQUIRE(name);
  CHECK(name->prefix == "/m/big-q4");
  CHECK(name->number == 2);
  CHECK(name->count == 10);
  CHECK(name->of_part(10) == "/m/big-q4-00010-of-00010.gguf");
  for (const char* other :
       {"", "big.gguf", "-00001-of-00003.gguf", "x-00000-of-00003.gguf", "x-00004-of-00003.gguf",
        "x-0001-of-0003.gguf", "x-00001-of-00003.GGUF", "x-0000a-of-00003.gguf",
        "x-00001-in-00003.gguf", "x_00001-of-00003.gguf", "x-00001-of-00000.gguf"}) {
    CAPTURE(other);
    CHECK_FALSE(gguf::parse_split_name(other));
  }
}

TEST_CASE("a folder that holds one model in GGUF is that model") {
  const test::temp_folder at;
  CHECK(find_model(at.path()).value().kind ==
        model_kind::folder); // opening it says what is missing
  write_all(at);
  at.write("README.md", "x");
  const auto found = find_model(at.path());
  REQUIRE(found.ok());
  CHECK(found.value().kind == model_kind::gguf);
  CHECK(found.value().path == at.file(part_name(0)));
  at.remove(part_name(0));
  CHECK(open_model(at.path()).detail().find("this is part 1 of 3") != std::string::npos);
  at.write("other.gguf", "GGUF");
  const auto two = find_model(at.path());
  REQUIRE_FALSE(two.ok());
  CHECK(two.detail() == at.path() +
                            ": the folder must hold one model, got 2 in GGUF; name one of "
                            "them: other.gguf, " +
                            part_name(1));
  at.write("config.json", "{}");
  CHECK(find_model(at.path()).value().kind == model_kind::folder);
}
