// op_backends: the tables of functions that a device runs its ops with. device::open() chooses them
// once; an op calls through its table and holds no condition on the backend.
#pragma once

namespace twill::gpu::detail {

struct linear_backend;
struct attention_backend;
struct sampling_backend;
struct rows_backend;
struct probe_backend;

struct op_backends {
  const linear_backend& linear;
  const linear_backend& any_linear; ///< for what `linear` does not support
  const attention_backend& attention;
  const sampling_backend& sampling;
  const rows_backend& rows;
  const probe_backend& probe;
};

/// The host's own forms, for a device that is this process's processor.
const op_backends& host_backends();
/// The Kokkos forms in the host's execution space. They are what other backends are compared with.
const op_backends& portable_backends();

} // namespace twill::gpu::detail
