#include "config/base/ledger.hpp"

namespace twill {

void ledger::taken(const std::string& what, std::int64_t amount) {
  accounts_[what].taken += amount;
}

void ledger::held(const std::string& what, const std::string& holder, std::int64_t amount) {
  if (amount != 0) accounts_[what].holders[holder] += amount;
}

void ledger::exists(const std::string& holder, bool stays) {
  (stays ? staying_ : passing_).insert(holder);
}

void ledger::add(const ledger& other, const std::string& prefix, const std::string& shared) {
  for (const auto& [what, from] : other.accounts_) {
    const std::string name = what == shared ? what : prefix + what;
    taken(name, from.taken);
    for (const auto& [holder, amount] : from.holders)
      held(name, prefix + holder, amount);
  }
  for (const auto& holder : other.passing_)
    exists(prefix + holder);
  for (const auto& holder : other.staying_)
    exists(prefix + holder, true);
}

bool ledger::is_at_rest() const {
  return passing_.empty();
}

std::vector<std::string> ledger::faults() const {
  std::vector<std::string> found;
  for (const auto& [what, one] : accounts_) {
    std::int64_t sum = 0;
    std::string holders;
    for (const auto& [holder, amount] : one.holders) {
      sum += amount;
      holders += (holders.empty() ? "" : ", ") + holder + " " + std::to_string(amount);
      if (amount < 0) found.push_back(what + ": " + holder + " holds " + std::to_string(amount));
      if (!passing_.contains(holder) && !staying_.contains(holder))
        found.push_back(what + ": " + std::to_string(amount) + " are held by " + holder +
                        ", which does not exist");
    }
    if (one.taken != sum)
      found.push_back(what + ": " + std::to_string(one.taken) + " are taken, and " +
                      (holders.empty() ? "nobody holds any" : "their holders have: " + holders));
  }
  return found;
}

} // namespace twill
