// server_ledger: what requests have taken of the server, and who holds it. Once no request is left,
// all of it has to be given back.
#pragma once

#include <string>
#include <vector>

#include "config/base/ledger.hpp"
#include "net/server_context.hpp"

namespace twill::net {

/// Adds what the server counts to what its engine does. Any thread.
void account(const server_context& context, ledger& to);

/// Tells which faults of a ledger are real: those that two looks in a row see without a request
/// between them. What is given back a moment after the end of a request is none. One thread at a
/// time.
class rest_watch {
public:
  /// The faults that were seen twice by now and not told before.
  std::vector<std::string> look(const ledger& now);

private:
  ledger before_;
  std::vector<std::string> told_; ///< since the last request
};

} // namespace twill::net
