// start_engine: starts the actor system behind an engine_port. It is the one header of actors/ that
// a program needs.
//
// Loading happens in the background: the port exists at once, in state `loading`. Destroying the
// engine stops every actor and joins their threads; no event is delivered afterwards.
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
  /// New requests obey these limits, sampling defaults, tenants and `scheduler.queue_timeout`;
  /// requests under way keep what they began with. Any thread.
  virtual void reload(const config::options& options) = 0;
};

/// Told while the model loads, on the executor's thread: the bytes of weights packed so far, and
/// the bytes of all weights.
using load_progress = std::function<void(std::int64_t done_bytes, std::int64_t total_bytes)>;

/// What options say of a model may be more than a path: this finds the path, and fetches the model
/// if it is elsewhere.
struct model_finder {
  /// The path for open_model() of what `model.path` says. `takes_long`, which may be null, is
  /// called before what may take hours. Called on threads of the engine's, for several models at
  /// once; an engine that ends waits for it. Throws std::exception with words for the operator.
  std::function<std::string(const std::string& configured, const std::function<void()>& takes_long)>
      find;
  /// Whether find() may have to fetch anything.
  std::function<bool(const std::string& configured)> may_fetch;
};

std::unique_ptr<engine> start_engine(const config::options& options,
                                     load_progress progress = nullptr, model_finder finder = {});

} // namespace twill::actors
