// The table of stored responses drops the same responses as a reference that searches all of them
// anew, also while some are being read, and for any number of tenants.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "net/stored/stored_table.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::test;

namespace {

struct row {
  stored_entry_ptr entry;
  std::int64_t room = 0;
  bool over = false;
  std::uint64_t over_since = 0; ///< higher for an entry that ended later
};

class both {
public:
  explicit both(const operation& setup)
      : most_(20 + setup.a % 200 + (setup.b % 8 == 7 ? 64 << 20 : 0)), keep_(setup.c % 20),
        table_({most_, std::chrono::seconds(keep_), [this] { return tenants_; }}) {}

  void apply(const operation& op) {
    const std::string tenant(1, static_cast<char>('a' + op.a % 3));
    row* one = rows_.empty() ? nullptr : &rows_[op.b % rows_.size()];
    switch (op.kind % 12) {
    case 0:
    case 1:
    case 2:
      add(tenant, op);
      break;
    case 3:
    case 4:
      if (one != nullptr) set_over(*one);
      break;
    case 5:
      make_room(tenant, bytes_of(op.c));
      break;
    case 6:
      now_ += op.c % 6;
      expire();
      break;
    case 7:
      if (one != nullptr) remove(one->entry);
      break;
    case 8:
      tenants_ = op.c % 9 == 8 ? 40 : op.c % 9;
      break;
    case 9:
      if (one != nullptr) set_room(*one, bytes_of(op.c));
      break;
    default:
      if (one == nullptr) break;
      if (one->entry->readers.empty())
        one->entry->readers.emplace_back();
      else
        one->entry->readers.clear();
    }
    compare();
  }

  void end() {
    while (!rows_.empty())
      remove(rows_.back().entry);
    compare();
    demand_equal(table_.bytes(), 0, "the room that nothing takes");
    std::vector<stored_entry_ptr> out;
    demand(table_.make_room("a", part(), out), "a whole part is free again");
    demand(!table_.make_room("a", part() + 1, out), "and no more");
    demand(out.empty(), "nothing goes for it");
  }

private:
  /// Each tenant's share. A long answer fits in it, however many tenants there are.
  std::int64_t part() const {
    const std::int64_t equal =
        most_ / static_cast<std::int64_t>(std::max<std::size_t>(tenants_, 1));
    return std::max(equal, std::min<std::int64_t>(most_ / 16, 1 << 20));
  }
  /// Fractions of a share, so that sums can equal the share exactly.
  std::int64_t bytes_of(std::uint32_t n) const {
    return n % 4 == 3 ? static_cast<std::int64_t>(n % 64) : part() * (n % 8) / 4 + n / 8 % 3 - 1;
  }

  std::int64_t sum(const std::string& tenant) const {
    std::int64_t bytes = 0;
    for (const row& one : rows_)
      if (tenant.empty() || one.entry->tenant == tenant) bytes += one.room;
    return bytes;
  }

  void add(const std::string& tenant, const operation& op) {
    const auto entry = std::make_shared<stored_entry>();
    entry->id = std::to_string(++last_id_);
    entry->tenant = tenant;
    entry->created_unix_s = now_ - op.c % 4;
    entry->room = std::max<std::int64_t>(bytes_of(op.b), 0);
    table_.add(entry);
    rows_.push_back({entry, entry->room});
  }

  void set_over(row& one) {
    if (one.over) return; // the end of an entry is reported once
    one.over = true;
    one.over_since = ++last_over_;
    table_.set_over(*one.entry);
  }

  void set_room(row& one, std::int64_t bytes) {
    one.room = std::max<std::int64_t>(bytes, 0);
    table_.set_room(*one.entry, one.room);
    demand_equal(one.entry->room, one.room, "the room of an entry");
  }

  void remove(stored_entry_ptr entry) {
    std::erase_if(rows_, [&](const row& one) { return one.entry == entry; });
    table_.remove(*entry);
    demand(entry->forgotten, "what was removed is forgotten");
    // Later calls with a removed entry change nothing.
    table_.set_room(*entry, 77);
    table_.set_over(*entry);
    table_.remove(*entry);
  }

  void make_room(const std::string& tenant, std::int64_t bytes) {
    std::vector<row> oldest;
    for (const row& one : rows_)
      if (one.entry->tenant == tenant && one.over && one.entry->readers.empty())
        oldest.push_back(one);
    std::sort(oldest.begin(), oldest.end(),
              [](const row& a, const row& b) { return a.over_since < b.over_since; });
    std::vector<stored_entry_ptr> going;
    std::int64_t left = sum(tenant);
    for (const row& one : oldest) {
      if (left + bytes <= part()) break;
      left -= one.room;
      going.push_back(one.entry);
    }
    const bool fits = left + bytes <= part();
    if (!fits) going.clear();
    std::vector<stored_entry_ptr> out;
    demand_equal(table_.make_room(tenant, bytes, out), fits, "whether there is room");
    demand(out == going, "which responses go for room");
    forget(out);
  }

  void expire() {
    std::vector<stored_entry_ptr> out, going;
    for (const row& one : rows_)
      if (one.over && one.entry->created_unix_s + keep_ <= now_) going.push_back(one.entry);
    table_.expire(now_, out);
    std::sort(out.begin(), out.end());
    std::sort(going.begin(), going.end());
    demand(out == going, "which responses have been kept for long enough");
    forget(out);
  }

  void forget(const std::vector<stored_entry_ptr>& gone) {
    for (const auto& entry : gone) {
      demand(entry->forgotten, "what has gone is forgotten");
      demand(table_.find(entry->id, entry->tenant) == nullptr, "what has gone is not found");
      std::erase_if(rows_, [&](const row& one) { return one.entry == entry; });
    }
  }

  void compare() {
    demand_equal(table_.bytes(), sum(""), "the room of all");
    auto next = std::numeric_limits<std::int64_t>::max();
    std::vector<stored_entry_ptr> all = table_.all(), expected;
    for (const row& one : rows_) {
      expected.push_back(one.entry);
      demand_equal(table_.outgrown(*one.entry), one.room > part(), "whether one has outgrown");
      demand(table_.find(one.entry->id, one.entry->tenant) == one.entry, "an entry is found");
      demand(table_.find(one.entry->id, "z") == nullptr, "by its own tenant alone");
      demand(!one.entry->forgotten, "an entry of the table is forgotten");
      if (one.over) next = std::min(next, one.entry->created_unix_s + keep_);
    }
    std::sort(all.begin(), all.end());
    std::sort(expected.begin(), expected.end());
    demand(all == expected, "which responses are stored");
    demand_equal(table_.next_expiry_unix_s(), next, "when the next one expires");
  }

  std::int64_t most_, keep_;
  std::size_t tenants_ = 2;
  stored_table table_;
  std::vector<row> rows_;
  std::int64_t now_ = 1000;
  int last_id_ = 0;
  std::uint64_t last_over_ = 0;
};

} // namespace

TEST_CASE("Stored responses go as from a plain list of them") {
  CHECK(first_failure({.cases = 2000, .long_cases = 100'000}, [](const operations& sequence) {
          both tables(sequence.empty() ? operation{} : sequence.front());
          for (const operation& op : sequence)
            tables.apply(op);
          tables.end();
        }) == "");
}
