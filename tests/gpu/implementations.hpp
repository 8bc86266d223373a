// Devices for each implementation of the ops that works on this machine. A test body runs on all of
// them and compares each with one oracle.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu/device.hpp"

namespace twill::test {

/// The implementations, in this order: the host's own; the portable one with teams of two threads;
/// the portable one in Kokkos' Serial space; the portable one on the tests' own backend
/// (distant/distant_device.hpp); CUDA's. If Kokkos has no OpenMP, teams have one thread; if it has
/// no Serial space, serial_implementation runs by OpenMP.
inline constexpr int host_implementation = 0, team_implementation = 1, serial_implementation = 2,
                     distant_implementation = 3, cuda_implementation = 4;

const char* name_of_implementation(int implementation);

/// The implementations that are tested in this process: see tested_device.hpp.
std::vector<int> implementations();
/// implementations() without host_implementation.
std::vector<int> portable_implementations();

/// A device of two threads and 4 GiB that runs `implementation`. Its ops().portable is the portable
/// implementation on the same device.
std::unique_ptr<gpu::device> open_implementation(int implementation,
                                                 const std::string& isa = "auto");

/// The instruction sets that this processor can run, narrowest first; empty if the host is not
/// tested.
std::vector<std::string> tested_isas();
/// A device on the host.
std::unique_ptr<gpu::device> open_host(const std::string& isa = "auto", std::int32_t threads = 2);

} // namespace twill::test
