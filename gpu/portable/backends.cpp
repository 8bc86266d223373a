// The tables of the portable implementations, in Kokkos' execution space on the host.
#include "gpu/attention/portable/attention_portable.hpp"
#include "gpu/linear/portable/linear_portable.hpp"
#include "gpu/portable/probe_portable.hpp"
#include "gpu/portable/runtime.hpp"
#include "gpu/rows/portable/rows_portable.hpp"
#include "gpu/sampling/portable/sampling_portable.hpp"

namespace twill::gpu::detail {

using on_host = launcher<kokkos_host>;

constinit const linear_backend portable_linear = linear_portable<on_host>::table;
constinit const attention_backend portable_attention = attention_portable<on_host>::table;
constinit const sampling_backend portable_sampling = sampling_portable<on_host>::table;
constinit const rows_backend portable_rows = rows_portable<on_host>::table;
constinit const probe_backend portable_probe = probe_portable<on_host>::table;

std::string start_portable(std::int32_t threads) {
  start_kokkos(threads);
  return backend_name<kokkos_host>();
}

} // namespace twill::gpu::detail
