// op_backends: the tables of functions that a device runs its ops with. device::open() chooses them
// once; an op calls through its table and holds no condition on the backend.
#pragma once

namespace twill::gpu::detail {

struct linear_backend;
struct attention_backend;
struct sampling_backend;

struct op_backends {
  const linear_backend& linear;
  const attention_backend& attention;
  const sampling_backend& sampling;
};

/// The host's own forms, for a device that is this process's processor.
const op_backends& host_backends();
/// The Kokkos forms, for any other execution space.
const op_backends& portable_backends();

} // namespace twill::gpu::detail
