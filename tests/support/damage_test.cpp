#include "tests/support/damage.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/catch.hpp"

using namespace twill::test;

namespace {

/// A checksum over the first `covered` bytes of a format.
unsigned char sum_of(const std::string& bytes, std::size_t covered) {
  return static_cast<unsigned char>(
      std::accumulate(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(covered), 7U,
                      [](unsigned a, char c) { return a * 31 + static_cast<unsigned char>(c); }));
}

} // namespace

TEST_CASE("damage: every part is damaged at its ends, and each copy differs in one part alone") {
  std::string bytes;
  for (int i = 0; i < 300; ++i)
    bytes += static_cast<char>(1 + i % 200);
  const auto parts = parts_in_order({{"first", 1}, {"none", 0}, {"second", 199}, {"third", 100}});
  std::set<std::size_t> changed, cuts;
  int appended = 0;
  CHECK(faults_after_damage(bytes, parts, [&](const damage& d, const std::string& damaged) {
          CHECK(damaged != bytes);
          if (d.kind == damage_kind::appended) {
            appended += damaged.size() == bytes.size() + 1;
          } else if (d.kind == damage_kind::cut) {
            CHECK(damaged == bytes.substr(0, d.at));
            cuts.insert(d.at);
          } else {
            changed.insert(d.at);
            const part* at = nullptr;
            for (const part& p : parts)
              if (p.name == d.part) at = &p;
            REQUIRE(at != nullptr);
            CHECK((at->begin <= d.at && d.at < at->end));
            CHECK(damaged.substr(0, d.at) == bytes.substr(0, d.at));
            CHECK(damaged[d.at] != bytes[d.at]);
            CHECK(damaged.substr(at->end) == bytes.substr(at->end));
          }
          return std::string();
        }) == "");
  CHECK(appended == 3);
  for (const std::size_t at : {0, 1, 64, 65, 66, 100, 199, 200, 250, 299}) {
    CAPTURE(at);
    CHECK(changed.contains(at));
    CHECK(cuts.contains(at));
  }
}

TEST_CASE("damage: a checksum that leaves out one byte at any end is found") {
  std::string bytes;
  for (int i = 0; i < 5000; ++i)
    bytes += static_cast<char>(i * 7 + 1);
  const auto faults = [&](std::size_t from, std::size_t to) {
    const auto right = sum_of(bytes.substr(from), to - from);
    return faults_after_damage(
        bytes, {{"body", 0, bytes.size()}}, [&](const damage&, const std::string& damaged) {
          const bool refused =
              damaged.size() != bytes.size() || sum_of(damaged.substr(from), to - from) != right;
          return refused ? std::string() : std::string("not noticed");
        });
  };
  CHECK(faults(0, 5000) == "");
  CHECK(faults(1, 5000).find("at 0 in `body`: not noticed") != std::string::npos);
  CHECK(faults(0, 4999).find("at 4999 in `body`: not noticed") != std::string::npos);
  CHECK(faults(0, 4096).find("at 4096 in `body`: not noticed") != std::string::npos);
}

TEST_CASE("damage: places are beside each power of two and each MiB") {
  const std::size_t mib = 1 << 20;
  const auto places = places_to_damage(3 * mib + 10);
  for (const std::size_t at : {std::size_t{0}, std::size_t{4095}, std::size_t{4096}, mib - 1, mib,
                               mib + 1, 2 * mib - 1, 2 * mib, 3 * mib - 1, 3 * mib, 3 * mib + 9})
    CHECK(std::binary_search(places.begin(), places.end(), at));
  CHECK(places_to_damage(0).empty());
  CHECK(places_to_damage(1) == std::vector<std::size_t>{0});
  CHECK(places_to_damage(2) == std::vector<std::size_t>{0, 1});
}

TEST_CASE("damage: an exception of the check is a fault, as are parts that leave out bytes") {
  CHECK(faults_after_damage("abc", {{"all", 0, 3}}, [](const damage&, const std::string&) {
          throw std::runtime_error("why");
          return std::string();
        }).find("another bit at 0 in `all`: exception: why\n") == 0);
  const auto fine = [](const damage&, const std::string&) { return std::string(); };
  CHECK(faults_after_damage("abc", {{"some", 0, 2}}, fine) ==
        "the test's parts end at 2, the bytes at 3\n");
  CHECK_FALSE(faults_after_damage("abc", {{"some", 0, 1}, {"more", 2, 3}}, fine).empty());
  CHECK_FALSE(faults_after_damage("abc", {{"some", 0, 2}, {"more", 1, 3}}, fine).empty());
}
