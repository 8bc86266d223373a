// start_engine: the actor system behind an engine_port. The one header of actors/ that main()
// needs.
//
// Loading happens in the background: the port exists at once, in state `loading`. Destroying the
// engine stops every actor and joins their threads; no event is delivered afterwards.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "actors/port/engine_port.hpp"
#include "config/options.hpp"

namespace twill::actors {

class engine {
public:
  virtual ~engine() = default;
  virtual engine_port& port() = 0;
};

/// Bytes of weights packed so far, and all; called on the executor's thread while it loads.
using load_progress = std::function<void(std::int64_t done_bytes, std::int64_t total_bytes)>;

std::unique_ptr<engine> start_engine(const config::options& options,
                                     load_progress progress = nullptr);

} // namespace twill::actors
