// tenant_budgets: the token_budget of each tenant that has one.
//
// Any thread. Engines of different models share one object, so that a tenant's tokens count for all
// models together.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/detail/token_budget.hpp"
#include "config/base/ledger.hpp"
#include "config/tenants.hpp"

namespace twill::actors {

class tenant_budgets {
public:
  tenant_budgets(const std::vector<config::tenant_options>& tenants, token_budget::time now) {
    reload(tenants, now);
  }

  /// Applies a reload. A tenant's used tokens stay counted, even if its limit changes.
  void reload(const std::vector<config::tenant_options>& tenants, token_budget::time now) {
    const std::lock_guard lock(mutex_);
    decltype(budgets_) next;
    for (const auto& tenant : tenants) {
      if (tenant.tokens_per_minute == 0) continue;
      const auto found = budgets_.find(tenant.name);
      auto& budget = next[tenant.name];
      budget = found == budgets_.end() ? std::make_shared<token_budget>(tenant.tokens_per_minute)
                                       : found->second;
      budget->set_per_minute(tenant.tokens_per_minute, now);
    }
    budgets_.swap(next);
  }

  /// The name of the ledger account for tokens charged to requests under way.
  static constexpr const char* charged_tokens = "tokens charged to tenants";
  void account(ledger& to) const {
    const std::lock_guard lock(mutex_);
    to.taken(charged_tokens, 0);
    for (const auto& [name, budget] : budgets_)
      to.taken(charged_tokens, budget->charged());
  }

  /// The tenant's budget; null if its tokens are not limited.
  std::shared_ptr<token_budget> of(const std::string& tenant) const {
    const std::lock_guard lock(mutex_);
    const auto found = budgets_.find(tenant);
    return found == budgets_.end() ? nullptr : found->second;
  }

private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<token_budget>> budgets_;
};

} // namespace twill::actors
