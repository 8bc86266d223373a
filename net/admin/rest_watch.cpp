#include "net/admin/rest_watch.hpp"

#include <algorithm>

namespace twill::net {

std::vector<std::string> rest_watch::look(const ledger& now) {
  std::vector<std::string> fresh;
  if (!now.is_at_rest()) {
    told_.clear();
  } else if (now == before_) {
    for (auto& fault : now.faults())
      if (std::find(told_.begin(), told_.end(), fault) == told_.end()) fresh.push_back(fault);
    told_.insert(told_.end(), fresh.begin(), fresh.end());
  }
  before_ = now;
  return fresh;
}

} // namespace twill::net
