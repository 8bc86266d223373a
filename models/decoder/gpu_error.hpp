// from_gpu: turns a failure of gpu/ into one of models/. The functions are pure.
#pragma once

#include "gpu/errc.hpp"
#include "models/errc.hpp"

namespace twill::models {

inline failure from_gpu(const gpu::failure& error) {
  switch (error.code) {
  case gpu::errc::out_of_memory:
    return {errc::out_of_memory, error.detail};
  case gpu::errc::not_built:
    return {errc::unsupported, error.detail};
  case gpu::errc::bad_source:
    return {errc::bad_tensor, error.detail};
  case gpu::errc::device_lost:
    break;
  }
  return {errc::device_failed, error.detail};
}

inline result<nothing> from_gpu(const gpu::result<nothing>& outcome) {
  if (!outcome.ok()) return from_gpu(outcome.error());
  return nothing{};
}

} // namespace twill::models
