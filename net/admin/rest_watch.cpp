#include "net/admin/rest_watch.hpp"

#include <algorithm>
#include <utility>

namespace twill::net {

std::vector<std::string> rest_watch::look(const ledger& now) {
  const auto has = [](const std::vector<std::string>& all, const std::string& fault) {
    return std::find(all.begin(), all.end(), fault) != all.end();
  };
  std::vector<std::string> faults, fresh;
  if (now.is_at_rest())
    faults = now.faults();
  else
    reported_.clear();
  for (const auto& fault : faults)
    if (has(before_, fault) && !has(reported_, fault)) fresh.push_back(fault);
  reported_.insert(reported_.end(), fresh.begin(), fresh.end());
  before_ = std::move(faults);
  return fresh;
}

} // namespace twill::net
