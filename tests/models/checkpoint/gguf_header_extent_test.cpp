// A program that fetches a GGUF file piece by piece must learn exactly where the file's headers
// end.
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>

#include "models/checkpoint/gguf/file.hpp"
#include "models/checkpoint/gguf/header_extent.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/temp_file.hpp"
#include "tests/models/support/tiny_llama.hpp"

using namespace twill::models;
namespace test = twill::test;

namespace {

std::uint64_t extent_of(const std::string& head) {
  return gguf::header_extent(std::as_bytes(std::span(head)));
}

/// The file with zeros behind its first `n` bytes, as it looks while it is fetched.
std::string cut_at(const std::string& whole, std::uint64_t n) {
  return whole.substr(0, n) + std::string(whole.size() - n, '\0');
}

} // namespace

TEST_CASE("the headers of a GGUF file end where a reader needs no further byte", "[gguf]") {
  const std::string whole = test::make_tiny_llama({}).build();
  const auto end = extent_of(whole);
  REQUIRE(end > 100);
  REQUIRE(end < whole.size());
  for (std::uint64_t n = 0; n < end; ++n) {
    const auto received = extent_of(whole.substr(0, n));
    INFO("of " << n << " bytes");
    REQUIRE(received > n);    // more are needed
    REQUIRE(received <= end); // and never more than the headers have
  }
  for (const auto n : {end, end + 1, std::uint64_t{whole.size()}})
    CHECK(extent_of(whole.substr(0, n)) == end);

  const test::temp_file enough(cut_at(whole, end)), too_few(cut_at(whole, end - 16));
  const auto opened = gguf::file::open(enough.path());
  REQUIRE(opened.ok());
  const test::temp_file all(whole);
  CHECK(opened.value()->tensors().size() == gguf::file::open(all.path()).value()->tensors().size());
  CHECK_FALSE(gguf::file::open(too_few.path()).ok());
}

TEST_CASE("no damage to a header makes its extent endless", "[gguf]") {
  const std::string whole = test::make_tiny_llama({}).build();
  const auto end = extent_of(whole);
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = whole.substr(0, random() % (end + 20));
    for (int k = 0; k < 3 && !damaged.empty(); ++k)
      damaged[random() % damaged.size()] = static_cast<char>(i % 2 == 0 ? 0xff : random());
    CHECK(extent_of(damaged) < (std::uint64_t{1} << 63)); // the search ends, and no sum overflows
  }
  CHECK(extent_of("no GGUF at all") <= 14);
}
