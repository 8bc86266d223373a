// What another folder's failure is to the engine: one of the executor, in that folder's words.
// Pure.
#pragma once

#include "actors/port/engine_port.hpp"

namespace twill::actors {

template <class E>
failure<errc> executor_failure(const failure<E>& f) {
  return {errc::executor_failed, f.detail};
}

} // namespace twill::actors
