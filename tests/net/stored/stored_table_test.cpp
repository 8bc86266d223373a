// The table of stored responses, compared with a reference that adds everything up anew each time.
#include <algorithm>
#include <map>
#include <random>

#include "net/stored/stored_table.hpp"
#include "tests/catch.hpp"

using namespace twill;
using namespace twill::net;

namespace {

/// The rules of the table, applied with sums over all entries.
class naive_table {
public:
  struct row {
    stored_entry_ptr entry;
    std::int64_t room = 0;
    bool over = false;
  };

  std::int64_t sum(const std::string& tenant, bool only_running = false) const {
    std::int64_t bytes = 0;
    for (const auto& one : rows)
      if (one.entry->tenant == tenant && !(only_running && one.over)) bytes += one.room;
    return bytes;
  }
  std::int64_t sum() const {
    std::int64_t bytes = 0;
    for (const auto& one : rows)
      bytes += one.room;
    return bytes;
  }
  row& of(const stored_entry_ptr& entry) {
    return *std::find_if(rows.begin(), rows.end(),
                         [&](const row& one) { return one.entry == entry; });
  }
  /// `rows` has the running entries first, then the ended ones in the order of their ends.
  void set_over(const stored_entry_ptr& entry) {
    auto moved = of(entry);
    moved.over = true;
    std::erase_if(rows, [&](const row& one) { return one.entry == entry; });
    rows.push_back(moved);
  }
  bool make_room(const std::string& tenant, std::int64_t bytes, std::int64_t part,
                 std::vector<stored_entry_ptr>& out) {
    if (sum(tenant, true) + bytes > part) return false;
    while (sum(tenant) + bytes > part) {
      const auto oldest = std::find_if(rows.begin(), rows.end(), [&](const row& one) {
        return one.over && one.entry->tenant == tenant;
      });
      out.push_back(oldest->entry);
      rows.erase(oldest);
    }
    return true;
  }
  void expire(std::int64_t now, std::int64_t keep, std::vector<stored_entry_ptr>& out) {
    for (const auto& one : rows)
      if (one.over && one.entry->created_unix_s + keep <= now) out.push_back(one.entry);
    std::erase_if(
        rows, [&](const row& one) { return one.over && one.entry->created_unix_s + keep <= now; });
  }

  std::vector<row> rows;
};

std::vector<std::string> ids(std::vector<stored_entry_ptr> entries) {
  std::vector<std::string> out;
  for (const auto& one : entries)
    out.push_back(one->id);
  return out;
}

std::vector<std::string> sorted(std::vector<std::string> all) {
  std::sort(all.begin(), all.end());
  return all;
}

} // namespace

TEST_CASE("The table of stored responses counts and removes as one that adds up anew") {
  std::mt19937 random(47);
  const auto below = [&](std::size_t n) { return random() % n; };
  std::size_t tenants = 3;
  constexpr std::int64_t most = 3000, keep = 50;
  stored_table table({most, std::chrono::seconds(keep), [&] { return tenants; }});
  naive_table naive;
  std::int64_t now = 1000;
  for (int step = 0; step < 20000; ++step) {
    const auto tenant = "t" + std::to_string(below(3));
    std::vector<stored_entry_ptr> out, expected;
    const auto part = most / static_cast<std::int64_t>(tenants);
    switch (below(8)) {
    case 0: {
      auto entry = std::make_shared<stored_entry>();
      entry->id = std::to_string(step);
      entry->tenant = tenant;
      entry->created_unix_s = now - static_cast<std::int64_t>(below(30));
      entry->room = static_cast<std::int64_t>(below(300));
      REQUIRE(table.make_room(tenant, entry->room, out) ==
              naive.make_room(tenant, entry->room, part, expected));
      table.add(entry);
      naive.rows.insert(naive.rows.begin(), {entry, entry->room, false});
      break;
    }
    case 1:
    case 2:
      REQUIRE(table.make_room(tenant, static_cast<std::int64_t>(step % 700), out) ==
              naive.make_room(tenant, step % 700, part, expected));
      break;
    case 3:
      now += static_cast<std::int64_t>(below(10));
      table.expire(now, out);
      naive.expire(now, keep, expected);
      std::sort(out.begin(), out.end());
      std::sort(expected.begin(), expected.end());
      break;
    case 4:
      tenants = 1 + below(4);
      break;
    default: {
      if (naive.rows.empty()) break;
      auto& row = naive.rows[below(naive.rows.size())];
      const auto entry = row.entry;
      const auto action = below(3);
      if (action == 0) {
        const auto room = row.room + static_cast<std::int64_t>(below(60));
        row.room = room;
        table.set_room(*entry, room);
      } else if (action == 1 && !row.over) {
        table.set_over(*entry);
        naive.set_over(entry);
      } else if (action == 2 && below(4) == 0) {
        table.remove(*entry);
        std::erase_if(naive.rows, [&](const auto& one) { return one.entry == entry; });
        REQUIRE(entry->forgotten);
        table.remove(*entry); // a second removal does nothing
        table.set_room(*entry, 5000);
        table.set_over(*entry);
      }
    }
    }
    REQUIRE(ids(out) == ids(expected));
    for (const auto& one : out) {
      REQUIRE(one->forgotten);
      REQUIRE(table.find(one->id, one->tenant) == nullptr);
    }
    REQUIRE(table.bytes() == naive.sum());
    auto first = std::numeric_limits<std::int64_t>::max();
    std::vector<stored_entry_ptr> all;
    for (const auto& one : naive.rows) {
      all.push_back(one.entry);
      if (one.over) first = std::min(first, one.entry->created_unix_s + keep);
      REQUIRE(table.outgrown(*one.entry) == (one.room > most / static_cast<std::int64_t>(tenants)));
    }
    REQUIRE(table.next_expiry_unix_s() == first);
    if (step % 16 != 0) continue;
    REQUIRE(sorted(ids(table.all())) == sorted(ids(all)));
    for (const auto& one : all) {
      REQUIRE(table.find(one->id, one->tenant) == one);
      REQUIRE(table.find(one->id, "other") == nullptr);
    }
  }
}
