// ledger: compares two records of every resource that must be given back (memory budgets, KV
// blocks, queue places, counts of requests): the counter of what is taken, and the records of the
// holders of its parts. If the two differ, something was not given back, or was given back twice.
//
// Plain data; one thread at a time. Each part of the program adds its accounts to the ledger while
// it holds its own lock, one part after the other. So while requests run, the accounts may be of
// different moments, and the two records must agree only in a ledger without requests
// (is_at_rest()).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace twill {

class ledger {
public:
  /// The account of one resource, such as "KV blocks".
  struct account {
    std::int64_t taken = 0; ///< the amount according to the resource's counter
    /// the amounts according to the holders' own records, by holder
    std::map<std::string, std::int64_t> holders;
    bool operator==(const account&) const = default;
  };

  /// The counter of `what` reports that `amount` more is taken.
  void taken(const std::string& what, std::int64_t amount);
  /// The record of `holder` reports that it has `amount` more of `what`.
  void held(const std::string& what, const std::string& holder, std::int64_t amount = 1);
  /// Adds a holder to those that exist. If `stays` is true, the holder may hold something while no
  /// request runs, as a cache does.
  void exists(const std::string& holder, bool stays = false);
  /// Adds all accounts of another ledger, with `prefix` before each name. The account `shared`
  /// keeps its name: its counter is shared by all added ledgers, so that their holders must come
  /// together in one account. Holders' names get the prefix there too.
  void add(const ledger& other, const std::string& prefix, const std::string& shared = {});

  /// Whether all existing holders are such that stay.
  bool is_at_rest() const;
  /// The errors in the ledger, one sentence each: amounts that differ or are negative, and holders
  /// that do not exist.
  std::vector<std::string> faults() const;
  const std::map<std::string, account>& accounts() const { return accounts_; }
  bool operator==(const ledger&) const = default;

private:
  std::map<std::string, account> accounts_;
  std::set<std::string> passing_, staying_; ///< holders that exist
};

} // namespace twill
