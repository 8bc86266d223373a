#include "net/connection/output_relief.hpp"

#include <chrono>
#include <string>

#include "config/base/log.hpp"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace twill::net {
namespace {

/// Large frames leave free memory in the heap, which malloc would otherwise keep for long.
void return_memory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

} // namespace

void output_relief::begin() {
  if (relieving_) return;
  if (const auto n = context_.output.relieve(std::chrono::steady_clock::now()); n > 0)
    log::warn("cut off " + std::to_string(n) +
              " clients that do not read their output: all output that waits is bounded by "
              "`server.max_output`");
  if (!context_.output.full() || stopping_) return return_memory();
  relieving_ = true;
  timer_.expires_after(output_budget::relief_interval);
  timer_.async_wait([this](error_code cancelled) {
    relieving_ = false;
    if (!cancelled) begin();
  });
}

} // namespace twill::net
