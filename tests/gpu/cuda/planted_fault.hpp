// A fault for tests of what a lost GPU leaves behind.
#pragma once

#include "gpu/device.hpp"

namespace twill::test {

/// Launches a kernel that writes to an address of nobody. The device is a GPU; nothing of this
/// process computes on it afterwards.
void plant_illegal_address(gpu::device& dev);

} // namespace twill::test
