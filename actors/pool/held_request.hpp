// held_request: a request that the pool knows of, from submit() until it is over.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "actors/port/engine_port.hpp"

namespace twill::actors {

/// All members but `silenced` and `on_event` are the pool's, under its mutex.
struct held_request {
  enum class place {
    entering, ///< nothing counts it yet
    waiting,  ///< for its model
    sending,  ///< some thread is handing it to its engine
    sent,
    refused, ///< its client does not know yet
  };

  request_id id = 0;
  std::size_t model = 0;
  request asked; ///< until it is sent
  event_callback on_event;
  std::int64_t bytes = 0; ///< of its prompt
  std::optional<std::chrono::steady_clock::time_point> deadline, queue_deadline;
  place where = place::entering;
  request_error refusal; ///< once it is refused
  request_id inner = 0;  ///< its id in its engine, once it is sent
  bool paused = false;
  bool aborted = false; ///< it is to end once it is sent
  bool over = false;    ///< its last event came while it was being sent
  std::atomic<bool> silenced{false};
};
using held_request_ptr = std::shared_ptr<held_request>;

} // namespace twill::actors
