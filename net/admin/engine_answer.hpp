// engine_answer: waits for what the engine, or the batch thread, tells by a callback in its own
// time.
//
// For the worker thread; it must not be called on a thread that calls back.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <utility>

namespace twill::net {

/// What `ask` makes it tell: ask(callback) passes on a callback that takes a T. Nothing
/// where it has not come within a second, as while a model loads or a step is long, or where
/// whoever was asked ends meanwhile and destroys the callback.
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
