// machine: what the host offers this process: cores, memory and its read bandwidth.
//
// Any thread. The functions only ask the system, except read_bandwidth(), which measures.
#pragma once

#include <cstdint>
#include <string>

namespace twill::gpu::machine {

/// Cores this process may keep busy, at least 1: those of its affinity mask, or as many as its
/// control groups grant time for, rounded up.
std::int32_t usable_cores();

/// Physical memory, or the least limit of this process's control groups where that is less.
std::int64_t memory_bytes();

/// Memory that can be taken now without swapping and within the control groups' limits;
/// memory_bytes() where the system does not say.
std::int64_t available_bytes();

/// "AMD EPYC 9354", or "unknown processor".
std::string processor_name();

/// Bytes per second that `threads` threads read together, each its own part of a buffer far larger
/// than the caches (512 MiB, or a quarter of the available memory). Takes up to a second.
double read_bandwidth(std::int32_t threads);

} // namespace twill::gpu::machine
