// Devices that run each implementation of the ops which works on this machine: a test body runs on
// all of them, against one oracle.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu/device.hpp"

namespace twill::test {

/// The host's own implementation; the portable one with teams of two lanes; the same in Kokkos'
/// Serial space; the same on a chip of the tests (distant/distant_device.hpp); that of a GPU. A
/// Kokkos without OpenMP has teams of one lane alone, and one without Serial runs serial_form by
/// OpenMP.
inline constexpr int host_form = 0, team_form = 1, serial_form = 2, distant_form = 3, cuda_form = 4;

const char* name_of_form(int form);

/// Those that are tested in this process: see tested_device.hpp.
std::vector<int> forms();
/// The same without host_form.
std::vector<int> portable_forms();

/// A device of two threads and 4 GiB that runs one form. Its ops().portable is the portable
/// implementation on the same device.
std::unique_ptr<gpu::device> open_form(int form, const std::string& isa = "auto");

/// The instruction sets that this processor runs, narrowest first; none where the host is not
/// tested.
std::vector<std::string> tested_isas();
/// A device on the host.
std::unique_ptr<gpu::device> open_host(const std::string& isa = "auto", std::int32_t threads = 2);

} // namespace twill::test
