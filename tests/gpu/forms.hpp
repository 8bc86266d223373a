// Devices that run each form of the ops which works on this machine: a test body runs on all,
// against one oracle.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gpu/device.hpp"

namespace twill::test {

/// The host's own form; the portable form with teams of two lanes; the same in Kokkos' Serial
/// space. A Kokkos without OpenMP has teams of one lane alone, and one without Serial runs the last
/// form by OpenMP.
inline constexpr int host_form = 0, team_form = 1, serial_form = 2;

const char* name_of_form(int form);

/// A device of two threads and 4 GiB that runs one form.
std::unique_ptr<gpu::device> open_form(int form, const std::string& isa = "auto");

} // namespace twill::test
