// held_request: a request in the pool, from submit() until it is over.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "actors/port/engine_port.hpp"

namespace twill::actors {

/// The pool's mutex guards all members except `silenced` and `on_event`.
struct held_request {
  enum class place {
    entering, ///< no counter includes it yet
    waiting,  ///< it waits for its model
    sending,  ///< a thread is submitting it to its model's engine
    sent,
    refused, ///< its client was not informed yet
  };

  request_id id = 0;
  std::size_t model = 0;
  request asked; ///< the request itself, until it is sent
  event_callback on_event;
  std::int64_t bytes = 0; ///< size of its prompt
  std::optional<std::chrono::steady_clock::time_point> deadline, queue_deadline;
  place where = place::entering;
  request_error refusal; ///< set once it is refused
  request_id inner = 0;  ///< its id in the model's engine, once it is sent
  bool paused = false;
  bool aborted = false; ///< it must end as soon as it was sent
  bool over = false;    ///< its last event came while it was being sent
  std::atomic<bool> silenced{false};
};
using held_request_ptr = std::shared_ptr<held_request>;

} // namespace twill::actors
