// read_bandwidth: what the host's memory gives to threads that only read. Takes up to a second.
#pragma once

#include <cstdint>

namespace twill::gpu::host {

/// Bytes per second that `threads` threads read together, each its own part of a buffer far larger
/// than the caches (512 MiB, or a quarter of the available memory).
double read_bandwidth(std::int32_t threads);

} // namespace twill::gpu::host
