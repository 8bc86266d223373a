// ledger: what is taken of all that has to be given back (memory budgets, blocks, places in queues,
// counts of requests), from two sides: the counter that was raised, and the records of those who
// hold a part of it. Where both sides differ, something was not given back, or given back twice.
//
// Plain data; one thread at a time. Each part of the program adds its accounts to one ledger while
// it holds its own lock; the parts are asked one after the other. So while requests run, the parts
// may be of different moments, and only a ledger without requests (is_at_rest()) has to add up.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace twill {

class ledger {
public:
  /// Of one thing, such as "KV blocks".
  struct account {
    std::int64_t taken = 0;                      ///< as its counter says
    std::map<std::string, std::int64_t> holders; ///< as their own records say, by holder
    bool operator==(const account&) const = default;
  };

  /// The counter of `what` says that so much more is taken.
  void taken(const std::string& what, std::int64_t amount);
  /// The record of `holder` says that it has so much more of `what`.
  void held(const std::string& what, const std::string& holder, std::int64_t amount = 1);
  /// There is such a holder, by the list of those that have begun and not ended. One that `stays`
  /// may hold something while no request runs, as a cache does.
  void exists(const std::string& holder, bool stays = false);
  /// Adds all that another ledger says, with `prefix` before each name. The account `shared` keeps
  /// its name, since one counter is of all parts together; its holders have the prefix.
  void add(const ledger& other, const std::string& prefix, const std::string& shared = {});

  /// There is no holder but those that stay.
  bool is_at_rest() const;
  /// What does not add up, one sentence each: amounts that differ or are negative, and holders that
  /// do not exist.
  std::vector<std::string> faults() const;
  const std::map<std::string, account>& accounts() const { return accounts_; }
  bool operator==(const ledger&) const = default;

private:
  std::map<std::string, account> accounts_;
  std::set<std::string> passing_, staying_; ///< holders that exist
};

} // namespace twill
