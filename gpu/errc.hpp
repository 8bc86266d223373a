// Errors of gpu/: each a value, with a detail that names the buffer, op or limit.
#pragma once

#include "config/base/result.hpp"

namespace twill::gpu {

enum class errc {
  out_of_memory, ///< the device budget or the machine's memory does not hold the allocation
  not_built,     ///< this build has no such backend or element type
  bad_source,    ///< a weight source contradicts its own shape or group size
  device_lost,   ///< the backend reported a failure; the device must be opened anew
};

template <class T>
using result = twill::result<T, errc>;
using failure = twill::failure<errc>;

} // namespace twill::gpu
