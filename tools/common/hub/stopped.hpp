// stopped_error: ends work on the hub early because the caller's `stopped` said so.
#pragma once

#include <stdexcept>

namespace twill::tools::hub {

class stopped_error : public std::runtime_error {
public:
  stopped_error() : std::runtime_error("stopped") {}
};

} // namespace twill::tools::hub
