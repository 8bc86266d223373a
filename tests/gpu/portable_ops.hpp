// The portable implementations of all ops in the host's execution space, for device_config::ops.
#pragma once

namespace twill::gpu::detail {
struct op_backends;
}

namespace twill::test {

const gpu::detail::op_backends* portable_ops();

} // namespace twill::test
