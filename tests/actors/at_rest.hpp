// Checks that an engine has got everything back once no request is left. Whatever a test did, all
// memory, blocks and queue places that requests took must be free again, and the engine's two
// records of each of them (config/base/ledger.hpp) must agree.
#pragma once

#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "actors/port/engine_port.hpp"
#include "tests/catch.hpp"

namespace scripted {

/// Returns nothing where the engine does not answer: an executor loads, or a step hangs.
inline std::optional<twill::ledger> ledger_of(const twill::actors::engine_port& port) {
  auto answer = std::make_shared<std::promise<twill::ledger>>();
  auto coming = answer->get_future();
  port.account([answer](twill::ledger all) { answer->set_value(std::move(all)); });
  if (coming.wait_for(std::chrono::seconds(1)) != std::future_status::ready) return std::nullopt;
  return coming.get();
}

/// Returns which memory, blocks or queue places requests have not given back, or that requests are
/// left. The text is empty if nothing is wrong or if the engine does not answer. Requests may give
/// back what they took a moment after their last event, so this looks again for up to ten seconds.
inline std::string faults_at_rest(const twill::actors::engine_port& port) {
  using clock = std::chrono::steady_clock;
  const auto began = clock::now();
  std::string found;
  for (;;) {
    const auto all = ledger_of(port);
    if (!all) return {};
    const bool at_rest = all->is_at_rest();
    found.clear();
    for (const std::string& fault : all->faults())
      found += fault + "\n";
    if (at_rest && found.empty()) return {};
    if (clock::now() - began > std::chrono::seconds(10))
      return at_rest ? found : "requests are left\n" + found;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

/// To be called by the destructor of a fixture that owns an engine.
inline void check_at_rest(const twill::actors::engine_port& port) {
  if (std::uncaught_exceptions() > 0) return; // the test has failed already
  const std::string faults = faults_at_rest(port);
  INFO(faults);
  CHECK(faults.empty());
}

} // namespace scripted
