// deadline: the latest time at which an exchange (one request with its reply, exchange.hpp) ends,
// and its outcome when that time has passed. The functions are pure.
#pragma once

#include <chrono>

#include "tools/twill-bench/engine/exchange.hpp"

namespace twill::bench {

inline clock::duration to_span(double seconds) {
  return std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(seconds));
}

inline clock::time_point deadline_of(const exchange& request,
                                     std::chrono::duration<double> timeout) {
  const double drop_s = request.cancellation().after_s.value_or(timeout.count());
  return request.start() + to_span(drop_s < timeout.count() ? drop_s : timeout.count());
}

inline void deadline_passed(exchange& request, std::chrono::duration<double> timeout) {
  const auto& drop_s = request.cancellation().after_s;
  if (drop_s && *drop_s < timeout.count())
    request.cancelled();
  else
    request.fail("timeout", "no end within " + std::to_string(timeout.count()) + " s");
}

} // namespace twill::bench
