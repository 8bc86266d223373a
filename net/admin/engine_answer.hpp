// engine_answer: waits for a value that another thread delivers by a callback: a thread of the
// engine, or the thread that runs the jobs of the Batch API.
//
// Call it on the worker thread; never on a thread that runs the callback.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <utility>

namespace twill::net {

/// Calls `ask(callback)`, which must pass `callback` (a function of one T) to the component that is
/// asked, and returns the value with which that component calls it. Returns nothing if the value
/// does not arrive within a second, for example while a model loads or during a long step, or if
/// the component ends in the meantime and destroys the callback.
template <class T, class Ask>
std::optional<T> engine_answer(Ask&& ask) {
  auto answer = std::make_shared<std::promise<T>>();
  auto coming = answer->get_future();
  ask([answer = std::move(answer)](T value) { answer->set_value(std::move(value)); });
  if (coming.wait_for(std::chrono::seconds(1)) != std::future_status::ready) return std::nullopt;
  try {
    return coming.get();
  } catch (const std::future_error&) {
    return std::nullopt;
  }
}

} // namespace twill::net
