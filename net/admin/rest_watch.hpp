// rest_watch: tells which faults of a ledger are real: those that two looks in a row see at rest.
// What is given back a moment after the end of a request is none.
//
// One thread at a time.
#pragma once

#include <string>
#include <vector>

#include "config/base/ledger.hpp"

namespace twill::net {

class rest_watch {
public:
  /// The faults that were seen twice by now and not told before.
  std::vector<std::string> look(const ledger& now);

private:
  std::vector<std::string> before_;   ///< what the last look saw at rest
  std::vector<std::string> reported_; ///< since the last request
};

} // namespace twill::net
