#include "gpu/detail/op_backends.hpp"

#include "gpu/detail/attention_backend.hpp"
#include "gpu/detail/linear_backend.hpp"
#include "gpu/detail/probe_backend.hpp"
#include "gpu/detail/rows_backend.hpp"
#include "gpu/detail/sampling_backend.hpp"

namespace twill::gpu::detail {

namespace {

constexpr op_backends portable{
    {&portable_linear, &portable_attention, &portable_sampling, &portable_rows, &portable_probe},
    &portable};
constexpr op_backends host{{&host_linear, &host_attention, &host_sampling, &host_rows, &host_probe},
                           &portable};

} // namespace

const op_backends& host_backends() {
  return host;
}

const op_backends& portable_backends() {
  return portable;
}

} // namespace twill::gpu::detail
