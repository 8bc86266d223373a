// executor_failure: turns a failure of models/ or gpu/ into one of the engine, with its text
// unchanged.
#pragma once

#include "actors/port/engine_port.hpp"

namespace twill::actors {

template <class E>
failure<errc> executor_failure(const failure<E>& f) {
  return {errc::executor_failed, f.detail};
}

} // namespace twill::actors
