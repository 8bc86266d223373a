// Causes a fault on a GPU, for tests of what happens after a GPU is lost.
#pragma once

#include "gpu/device.hpp"

namespace twill::test {

/// Launches a kernel that writes to an unmapped address. The device must be a GPU; afterwards this
/// process cannot compute on that GPU.
void plant_illegal_address(gpu::device& dev);

} // namespace twill::test
