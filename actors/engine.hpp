// start_engine: starts the actor system behind an engine_port. A program needs no other header of
// actors/.
//
// The model is loaded in the background: the engine_port exists at once, in state `loading`. The
// engine's destructor stops every actor and joins their threads; no event is delivered afterwards.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "actors/port/engine_port.hpp"
#include "config/options.hpp"

namespace twill::actors {

class engine {
public:
  virtual ~engine() = default;
  virtual engine_port& port() = 0;
  /// Changes the limits, sampling defaults, tenants and `scheduler.queue_timeout` for new requests;
  /// requests under way keep the values that they began with. May be called on any thread.
  virtual void reload(const config::options& options) = 0;
};

/// Called on the executor's thread while the model loads, with the bytes of weights packed so far
/// and the bytes of all weights.
using load_progress = std::function<void(std::int64_t done_bytes, std::int64_t total_bytes)>;

/// `model.path` of the options may be something other than a path. A model_finder turns it into a
/// path, and fetches the model if it is not on this machine.
struct model_finder {
  /// Returns the path for open_model() that belongs to `configured`, the value of `model.path`.
  /// Calls `takes_long`, which may be null, before an operation that may take hours. The engine
  /// calls find() on threads of its own, for several models at once, and waits for it when the
  /// engine ends. Throws std::exception with a message for the operator.
  std::function<std::string(const std::string& configured, const std::function<void()>& takes_long)>
      find;
  /// Whether find() may have to fetch files for `configured`.
  std::function<bool(const std::string& configured)> may_fetch;
};

std::unique_ptr<engine> start_engine(const config::options& options,
                                     load_progress progress = nullptr, model_finder finder = {});

} // namespace twill::actors
