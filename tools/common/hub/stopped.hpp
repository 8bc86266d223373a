// stopped_error: thrown to end an operation on the hub early, after the caller's `stopped` callback
// has returned true.
#pragma once

#include <stdexcept>

namespace twill::tools::hub {

class stopped_error : public std::runtime_error {
public:
  stopped_error() : std::runtime_error("stopped") {}
};

} // namespace twill::tools::hub
