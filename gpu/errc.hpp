// Errors of gpu/. Functions return them as values, with a detail string that names the buffer, op
// or limit.
#pragma once

#include "config/base/result.hpp"

namespace twill::gpu {

enum class errc {
  out_of_memory, ///< the allocation does not fit the device's budget or the machine's memory
  not_built,     ///< this build has no such backend or element type
  bad_source,    ///< a weight source contradicts its own shape or group size
  device_lost,   ///< the backend reported a failure; the device must be opened again
};

template <class T>
using result = twill::result<T, errc>;
using failure = twill::failure<errc>;

} // namespace twill::gpu
