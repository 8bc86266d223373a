// An engine over scripted runners. Its destructor checks that the engine's ledger balances.
#pragma once

#include <memory>
#include <utility>

#include "tests/actors/at_rest.hpp"
#include "tests/actors/scripted_runner.hpp"

namespace scripted {

/// An engine over a script. ready() waits until the engine accepts requests.
struct fixture {
  explicit fixture(config::options options = {},
                   std::shared_ptr<script> s = std::make_shared<script>())
      : plan(std::move(s)), engine(actors::start_engine_with(options, runners(plan), nullptr,
                                                             nullptr, plan->open_kv_store)),
        port(engine->port()) {}
  ~fixture() {
    if (engine && !leaves_requests) check_at_rest(port);
  }
  fixture(const fixture&) = delete;
  fixture& operator=(const fixture&) = delete;
  bool ready() {
    return eventually([&] { return port.state() == actors::engine_state::ready; });
  }
  bool no_blocks_used() {
    return eventually([&] { return port.stats().kv_blocks_used == 0; });
  }

  bool leaves_requests = false; ///< set by a test whose engine ends while requests run
  std::shared_ptr<script> plan;
  std::unique_ptr<actors::engine> engine;
  actors::engine_port& port;
};

} // namespace scripted
