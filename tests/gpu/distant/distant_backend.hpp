// Declarations shared by the files of the distant device (distant_device.hpp), a simulated GPU. For
// CUDA devices, gpu/cuda/cuda_backends.hpp is the corresponding header.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tests/gpu/distant/chip.hpp"

namespace twill::gpu::detail {
struct op_backends;
class space;
} // namespace twill::gpu::detail

namespace twill::test {

/// The portable implementations of all ops, run by the chip. Defined in distant_ops.cpp.
const gpu::detail::op_backends& distant_backends();
/// Starts Kokkos for the calling thread, and returns its description. Defined in distant_ops.cpp.
std::string start_distant(std::int32_t threads);
/// A Kokkos space to launch on, for space::instance(). Defined in distant_ops.cpp.
std::shared_ptr<const void> make_distant_instance();

/// The stream on which a distant device's ops begin. Defined in distant_device.cpp.
const std::shared_ptr<chip::stream>& stream_of(const gpu::detail::space& distant);

} // namespace twill::test
