// The table of batches, close to its limits, makes the same decisions as a plain list of batches.
#include "net/batch/batch_table.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::net;
using namespace twill::test;

namespace {

struct row {
  std::string id, tenant;
  std::int64_t number = 0;
  batch_status status = batch_status::validating;
  bool ended() const {
    return status == batch_status::completed || status == batch_status::failed ||
           status == batch_status::expired || status == batch_status::cancelled;
  }
};

class both {
public:
  /// A table that has nearly as many batches, and as many under way, as it may have.
  explicit both(const operation& setup) {
    const std::size_t n_all = batch_table::max_batches - setup.a % 6;
    const std::size_t n_active = batch_table::max_active - setup.b % 6;
    for (std::size_t i = 0; i < n_all; ++i) {
      // Each of three tenants has about a third of the batches.
      const std::string tenant(1, static_cast<char>('a' + i % 3));
      // Two of the batches under way are the oldest ones.
      const bool is_active = i < 2 || i + n_active - 2 >= n_all;
      restore(tenant, is_active ? batch_status::in_progress : batch_status::completed, 1 + i);
    }
  }

  void apply(const operation& op) {
    const std::string tenant(1, static_cast<char>('a' + op.a % 4));
    // One of the oldest or the newest batches, on which the table's decisions depend.
    const std::size_t near = op.b % 8, i = op.c % 2 == 0 ? near : rows_.size() - 1 - near;
    switch (op.kind % 8) {
    case 0:
    case 1:
    case 2:
      add(tenant, op.b % 8 == 0 ? op.c % 4 : 30 + op.c % 8);
      break;
    case 3:
      restore(tenant, op.b % 2 == 0 ? batch_status::in_progress : batch_status::completed,
              op.c % 1200);
      break;
    case 4:
      table_.remove(rows_[i].id);
      table_.remove("none");
      rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    default: {
      constexpr batch_status any[] = {batch_status::validating, batch_status::in_progress,
                                      batch_status::finalizing, batch_status::cancelling,
                                      batch_status::completed,  batch_status::failed,
                                      batch_status::expired,    batch_status::cancelled};
      row& one = rows_[i];
      one.status = any[op.a % 8];
      table_.update(one.id, [&](batch& entry) { entry.status = one.status; });
    }
    }
    compare(op.a % rows_.size());
  }

  void compare_all() {
    for (const std::string tenant : {"a", "b", "c", "d", "e"}) {
      const auto is = table_.list(tenant);
      std::size_t n = 0;
      for (const row& one : rows_) {
        if (one.tenant != tenant) continue;
        demand(n < is.size() && is[n].id == one.id, "the list of a tenant's batches");
        demand_equal(is[n].number, one.number, "the number of a batch");
        ++n;
      }
      demand_equal(is.size(), n, "how many batches a tenant has");
    }
  }

private:
  std::size_t count(const std::string& tenant, bool ended) const {
    return static_cast<std::size_t>(std::count_if(rows_.begin(), rows_.end(), [&](const row& one) {
      return (tenant.empty() || one.tenant == tenant) && one.ended() == ended;
    }));
  }

  /// Removes the oldest ended batch of a tenant with the most of them. Returns its id or "".
  std::string forget_one() {
    std::size_t most = 0;
    for (const std::string tenant : {"a", "b", "c", "d"})
      most = std::max(most, count(tenant, true));
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (!rows_[i].ended() || count(rows_[i].tenant, true) < most) continue;
      const std::string id = rows_[i].id;
      rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(i));
      return id;
    }
    return "";
  }

  static batch of(const row& one) {
    batch made;
    made.id = one.id;
    made.tenant = one.tenant;
    made.status = one.status;
    made.number = one.number;
    return made;
  }

  void add(const std::string& tenant, std::size_t most_of_tenant) {
    auto expected = batch_table::added::yes;
    if (count("", false) >= batch_table::max_active)
      expected = batch_table::added::too_many;
    else if (count(tenant, false) >= most_of_tenant)
      expected = batch_table::added::too_many_of_tenant;
    row added{"batch-" + std::to_string(++last_id_), tenant, 7, batch_status::validating};
    std::string forgotten;
    demand(table_.add(of(added), most_of_tenant, &forgotten) == expected,
           "whether a batch is added");
    std::string expected_forgotten;
    if (expected == batch_table::added::yes) {
      if (rows_.size() >= batch_table::max_batches) expected_forgotten = forget_one();
      added.number = ++last_number_;
      rows_.push_back(added);
    }
    demand(forgotten == expected_forgotten,
           "\"" + forgotten + "\" was forgotten, expected \"" + expected_forgotten + "\"");
  }

  void restore(const std::string& tenant, batch_status status, std::size_t number) {
    row earlier{"batch-" + std::to_string(++last_id_), tenant, static_cast<std::int64_t>(number),
                status};
    std::string forgotten, expected_forgotten;
    bool fits = true;
    if (rows_.size() >= batch_table::max_batches) {
      expected_forgotten = forget_one();
      fits = !expected_forgotten.empty();
    }
    demand_equal(table_.restore(of(earlier), &forgotten), fits, "whether a batch is restored");
    demand(forgotten == expected_forgotten, "which batch is forgotten for one that is restored");
    if (!fits) return;
    last_number_ = std::max(last_number_, earlier.number);
    rows_.push_back(earlier);
  }

  void compare(std::size_t i) {
    const row& one = rows_[i];
    const auto known = table_.get(one.id);
    demand(known && known->id == one.id, "a batch is there");
    demand(known->status == one.status && known->tenant == one.tenant, "what a batch is");
    demand_equal(known->number, one.number, "the number of a batch");
    demand(table_.status_of(one.id) == one.status, "the status of a batch");
    demand(table_.find(one.id, one.tenant).has_value(), "a tenant finds its batch");
    demand(!table_.find(one.id, "e"), "nobody else finds it");
    demand(!table_.get("none") && !table_.status_of("none"), "what was never there");
  }

  batch_table table_;
  std::vector<row> rows_; ///< in the order of the table
  std::int64_t last_number_ = 0;
  int last_id_ = 0;
};

} // namespace

TEST_CASE("Batches are taken and forgotten as by a plain list of them") {
  CHECK(first_failure({.cases = 60, .long_cases = 10'000, .most_operations = 60},
                      [](const operations& sequence) {
                        both tables(sequence.empty() ? operation{} : sequence.front());
                        for (const operation& op : sequence)
                          tables.apply(op);
                        tables.compare_all();
                      }) == "");
}
