// An id_table behaves as a map does, also for ids that collide in the table.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "actors/scheduling/id_table.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using twill::actors::id_table;
using twill::test::demand;
using twill::test::demand_equal;
using twill::test::operation;
using twill::test::operations;

namespace {

/// Ids of any kind. More than half of them hash to slots at the end of the table, whatever its
/// size, so that their entries wrap around to its beginning.
std::vector<std::uint64_t> any_ids() {
  std::vector<std::uint64_t> ids{0, 1, 2, 3, 1ULL << 63, ~0ULL};
  for (std::uint64_t id = 4; ids.size() < 50; ++id) {
    const std::uint64_t place = id * 0x9e3779b97f4a7c15ULL >> 58;
    if (place >= 61 || place == 0 || id % 97 == 0) ids.push_back(id);
  }
  return ids;
}

struct both {
  id_table<int> table;
  std::map<std::uint64_t, int> map;
  std::map<std::uint64_t, const int*> addresses;

  void apply(const operation& o, const std::vector<std::uint64_t>& ids) {
    const std::uint64_t id = ids[o.a % ids.size()];
    switch (o.kind % 16) {
    case 0:
      if (o.b % 32 != 0) break;
      table.clear();
      map.clear();
      break;
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
      table.erase(id);
      map.erase(id);
      break;
    case 6:
      table.prefetch(id);
      table.prefetch_value(id);
      break;
    default:
      demand_equal(table[id], map[id], "the value");
      table[id] = map[id] = static_cast<int>(o.b % 100);
    }
    compare(ids);
  }
  void compare(const std::vector<std::uint64_t>& ids) {
    demand_equal(table.size(), map.size(), "the size");
    demand_equal(table.empty(), map.empty(), "whether it is empty");
    const id_table<int>& constant = table;
    std::erase_if(addresses, [&](const auto& one) { return !map.contains(one.first); });
    for (const std::uint64_t id : ids) {
      const int* found = table.find(id);
      demand(found == constant.find(id), "two look-ups differ");
      demand((found != nullptr) == map.contains(id), "one is there that should not be, or lacks");
      if (found == nullptr) continue;
      demand_equal(*found, map.at(id), "a value");
      demand(&table.at(id) == found && &constant.at(id) == found, "at() is not what is found");
      demand(addresses.emplace(id, found).first->second == found, "a value has moved");
    }
    std::map<std::uint64_t, int> seen;
    table.for_each([&](std::uint64_t id, int& value) {
      demand(seen.emplace(id, value).second, "one is seen twice");
    });
    demand(seen == map, "for_each() sees others");
    seen.clear();
    constant.for_each([&](std::uint64_t id, const int& value) { seen.emplace(id, value); });
    demand(seen == map, "for_each() of a constant table sees others");
  }
};

} // namespace

TEST_CASE("an id_table does what a map does", "[scheduling]") {
  const auto ids = any_ids();
  const auto failure = twill::test::first_failure({200, 5000, 200}, [&](const operations& ops) {
    both b;
    for (const operation& o : ops)
      b.apply(o, ids);
    for (std::uint32_t i = 0; i < ids.size(); ++i)
      b.apply({1, i, 0, 0}, ids);
    demand(b.table.empty(), "something is left");
  });
  CHECK(failure == "");
}
