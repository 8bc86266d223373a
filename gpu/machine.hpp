// machine: what the host offers this process: cores, memory and its read bandwidth.
//
// Any thread. The functions only ask the system, except read_bandwidth(), which measures.
#pragma once

#include <cstdint>
#include <string>

namespace twill::gpu::machine {

/// The number of cores that this process may keep busy, at least 1: the cores in its affinity mask,
/// or fewer where its control groups grant less processor time (rounded up to whole cores).
std::int32_t usable_cores();

/// Physical memory, or the lowest memory limit of this process's control groups where that is less.
std::int64_t memory_bytes();

/// Memory that can be allocated now without swapping and within the control groups' limits;
/// memory_bytes() where the system does not report this.
std::int64_t available_bytes();

/// "AMD EPYC 9354", or "unknown processor".
std::string processor_name();

/// Measures how many bytes per second `threads` threads read together. Each thread reads its own
/// part of a buffer far larger than the caches (512 MiB, or a quarter of the available memory).
/// Takes up to a second.
double read_bandwidth(std::int32_t threads);

} // namespace twill::gpu::machine
