// tenant_budgets: the token_budget of each tenant that has one.
//
// The set never changes, and the budgets lock themselves. Engines that serve different models share
// one, so that a tenant's tokens count whatever model they are of.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/detail/token_budget.hpp"
#include "config/tenants.hpp"

namespace twill::actors {

class tenant_budgets {
public:
  explicit tenant_budgets(const std::vector<config::tenant_options>& tenants) {
    for (const auto& tenant : tenants)
      if (tenant.tokens_per_minute > 0)
        budgets_.emplace(tenant.name, std::make_unique<token_budget>(tenant.tokens_per_minute));
  }

  /// Null when the tenant's tokens are not limited.
  token_budget* of(const std::string& tenant) const {
    const auto found = budgets_.find(tenant);
    return found == budgets_.end() ? nullptr : found->second.get();
  }

private:
  std::unordered_map<std::string, std::unique_ptr<token_budget>> budgets_;
};

} // namespace twill::actors
