// ledger: finds resources that were taken and not given back, or given back twice. A ledger has one
// account for each resource (KV blocks, bytes of a memory budget, queue places). An account has two
// records of the resource: the resource's own counter of how much is taken, and the amounts that
// each holder says it has. A holder is an object that takes resources, such as a request, a socket
// or a cache. If an account's counter differs from the sum of its holders' amounts, that is a
// fault.
//
// A ledger is plain data, and only one thread at a time may use it. Each part of the program
// (engine, server, batches) adds its counters and holders to the ledger while it holds its own
// lock, one part after the other. So while requests run, the records may be of different moments,
// and an account must balance only when no request runs (is_at_rest()).
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
  /// Reports that the object `holder`, which may take resources, exists. If `stays` is true, the
  /// object may have resources while no request runs, as a cache may.
  void exists(const std::string& holder, bool stays = false);
  /// Copies everything from the ledger `other`, for example the ledger of one model, into this
  /// ledger. Each name of an account or holder gets `prefix`, for example "MODEL: ". Only the
  /// account named `shared` keeps its name: all models take its resource from one common counter,
  /// so the amounts of all models are gathered in one account of that name.
  void add(const ledger& other, const std::string& prefix, const std::string& shared = {});

  /// Whether all existing holders are such that stay.
  bool is_at_rest() const;
  /// The faults in the ledger, one sentence each: an account whose counter differs from the sum of
  /// its holders' amounts, a negative amount, or an amount of a holder that does not exist.
  std::vector<std::string> faults() const;
  const std::map<std::string, account>& accounts() const { return accounts_; }
  bool operator==(const ledger&) const = default;

private:
  std::map<std::string, account> accounts_;
  std::set<std::string> passing_, staying_; ///< holders that exist
};

} // namespace twill
