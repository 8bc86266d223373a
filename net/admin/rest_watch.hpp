// rest_watch: finds resources that requests have not given back. It reads ledgers
// (config/base/ledger.hpp), which list how much of each resource is taken and which objects have
// it. A fault, which means that the amounts of the objects do not add up to the amount taken, is
// reported only if two successive calls of look() find it while no requests are running. A resource
// that is released a moment after the end of its request is therefore not reported.
//
// Only one thread at a time may use it.
#pragma once

#include <string>
#include <vector>

#include "config/base/ledger.hpp"

namespace twill::net {

class rest_watch {
public:
  /// Returns the faults that have now been seen twice and were not returned before.
  std::vector<std::string> look(const ledger& now);

private:
  /// Faults that the last call of look() found while no requests were running.
  std::vector<std::string> before_;
  std::vector<std::string> reported_; ///< faults that were returned since the last request
};

} // namespace twill::net
