// machine: what the host offers this process. Pure queries; any thread.
#pragma once

#include <cstdint>
#include <string>

namespace twill::gpu::host {

/// Cores this process may run on (its affinity mask), at least 1.
std::int32_t usable_cores();

/// Physical memory, or this control group's limit where that is less.
std::int64_t memory_bytes();

/// "AMD EPYC 9354", or "unknown processor".
std::string processor_name();

} // namespace twill::gpu::host
