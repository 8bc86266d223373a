// The names of an engine's holders in a ledger.
#pragma once

#include <string>

#include "actors/port/engine_port.hpp"

namespace twill::actors {

inline std::string holder_name(request_id request) {
  return "request " + std::to_string(request);
}

} // namespace twill::actors
