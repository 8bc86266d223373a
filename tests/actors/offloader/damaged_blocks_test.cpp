// KV blocks in a damaged file: every damaged byte of a block, in its header or its data, is
// detected, and every other block is read as it was written.
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "actors/offloader/block_file.hpp"
#include "actors/offloader/host_pool.hpp"
#include "actors/offloader/kept_folder.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/shown_store.hpp"
#include "tests/models/support/temp_folder.hpp"
#include "tests/support/damage.hpp"

namespace {

using namespace twill::actors;
using namespace twill::test;

constexpr hash_key key{11, 12};
constexpr std::int32_t n_places = 4, block_tokens = 5;
constexpr std::size_t block_bytes = 9001, header_bytes = 4096;

block_identity identity_of(std::int32_t place) {
  block_identity one;
  one.parent = root_key(static_cast<std::uint64_t>(place) + 3);
  one.tokens = {place + 1, 20, 30, 40, 50 + place};
  one.key = key_after(key, one.parent, one.tokens);
  return one;
}

std::string bytes_of(std::int32_t place) {
  std::string all(block_bytes, '\0');
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<char>(1 + (i * 31 + static_cast<std::size_t>(place) * 7) % 250);
  return all;
}

/// The order in which the places were written.
constexpr std::array<std::int32_t, n_places> written_order = {2, 0, 3, 1};

/// The parts of a place, in order, as block_file.hpp and the struct in its .cpp describe them.
std::vector<sized> parts_of_place(std::int32_t place) {
  const std::string of = " of " + std::to_string(place);
  const std::size_t fields = 8 * 2 + 16 * 2 + 8 * 4 + 4 * 256 + 8;
  const std::size_t padded = (block_bytes + 4095) / 4096 * 4096;
  return {{"magic" + of, 8},
          {"fingerprint" + of, 8},
          {"key" + of, 16},
          {"parent" + of, 16},
          {"number" + of, 8},
          {"size" + of, 8},
          {"sum of bytes" + of, 8},
          {"token count" + of, 8},
          {"tokens" + of, 4 * 256},
          {"own sum" + of, 8},
          {"unused" + of, header_bytes - fields},
          {"bytes" + of, block_bytes},
          {"padding" + of, padded - block_bytes}};
}

} // namespace

TEST_CASE("each damaged byte of a block in a file is noticed, and costs that block alone",
          "[actors][damage]") {
  const auto bytes = std::make_shared<shown_bytes>();
  const auto pool = host_pool::create(block_bytes, 2).value();
  const auto open = [&] {
    return block_file(std::make_unique<shown_store>(bytes), block_bytes, "model");
  };
  {
    block_file file = open();
    for (const std::int32_t place : written_order) {
      const auto from = pool->take();
      std::memset(from.get(), 0, static_cast<std::size_t>(pool->stride()) - header_bytes);
      std::memcpy(from.get(), bytes_of(place).data(), block_bytes);
      REQUIRE(file.write(place, identity_of(place), from).ok());
    }
  }
  const std::string whole = bytes->written;
  std::vector<sized> sizes;
  for (std::int32_t place = 0; place < n_places; ++place)
    for (const sized& one : parts_of_place(place))
      sizes.push_back(one);
  const std::size_t stride = whole.size() / n_places;
  std::vector<std::string> wanted;
  for (std::int32_t place = 0; place < n_places; ++place)
    wanted.push_back(bytes_of(place));

  int refused = 0;
  const auto check = [&](const damage& d, const std::string& damaged) -> std::string {
    bytes->instead = &damaged;
    block_file file = open();
    const auto differs = [&](std::size_t begin, std::size_t end) {
      return damaged.size() < end ||
             std::memcmp(damaged.data() + begin, whole.data() + begin, end - begin) != 0;
    };
    constexpr std::size_t summed = 8 * 2 + 16 * 2 + 8 * 4 + 4 * 256 + 8;
    std::vector<std::int32_t> expected; // in the order of the writes
    for (const std::int32_t place : written_order) {
      const std::size_t at = static_cast<std::size_t>(place) * stride;
      const bool is_there = damaged.size() >= at + header_bytes;
      if (is_there && !differs(at, at + summed)) expected.push_back(place);
    }
    std::vector<std::int32_t> found;
    for (const auto& kept : file.scan(n_places, block_tokens, key, false)) {
      const auto one = identity_of(kept.place);
      if (kept.identity.key != one.key || kept.identity.parent != one.parent ||
          kept.identity.tokens != one.tokens)
        return "place " + std::to_string(kept.place) + " has another identity";
      found.push_back(kept.place);
    }
    if (found != expected) return "another set of blocks was found, or in another order";
    for (std::int32_t place = 0; place < n_places; ++place) {
      const std::size_t at = static_cast<std::size_t>(place) * stride;
      const bool hit = differs(at, at + summed) || damaged.size() < at + stride ||
                       differs(at + header_bytes, at + header_bytes + block_bytes);
      const auto to = pool->take();
      const auto read = file.read(place, identity_of(place).key, to);
      refused += hit;
      if (read.ok() == hit) return hit ? "it was read" : "a block was refused: " + read.detail();
      if (hit && (read.detail().find("shown store") == std::string::npos ||
                  (d.kind != damage_kind::cut &&
                   read.detail().find("KV block " + std::to_string(place)) == std::string::npos)))
        return "an error that does not name the file and the block: " + read.detail();
      if (!hit &&
          std::memcmp(to.get(), wanted[static_cast<std::size_t>(place)].data(), block_bytes) != 0)
        return "other bytes than were written";
    }
    return "";
  };
  REQUIRE(check({damage_kind::bit, "none", 0}, whole) == "");
  CHECK(faults_after_damage(whole, parts_in_order(sizes), check) == "");
  CHECK(refused > 1000);
}

TEST_CASE("a damaged key of the folder of KV is replaced, and the new one stays",
          "[actors][damage]") {
  const temp_folder f;
  const auto first = kept_key(f.path()).value();
  std::ifstream in(f.file("key"), std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  const auto same = [](const hash_key& a, const hash_key& b) {
    return a.first == b.first && a.second == b.second;
  };
  CHECK(faults_after_damage(whole, parts_in_order({{"first", 8}, {"second", 8}, {"sum", 8}}),
                            [&](const damage& d, const std::string& damaged) -> std::string {
                              f.write("key", damaged);
                              const auto got = kept_key(f.path());
                              if (!got.ok()) return got.detail();
                              if (d.kind == damage_kind::appended)
                                return same(got.value(), first) ? "" : "another key";
                              if (same(got.value(), first) || got.value().first == first.first ||
                                  got.value().second == first.second)
                                return "a damaged key is used";
                              return same(kept_key(f.path()).value(), got.value())
                                         ? ""
                                         : "it does not stay";
                            }) == "");
}
