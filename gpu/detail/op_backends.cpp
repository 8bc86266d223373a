#include "gpu/detail/op_backends.hpp"

#include "gpu/detail/attention_backend.hpp"
#include "gpu/detail/linear_backend.hpp"
#include "gpu/detail/probe_backend.hpp"
#include "gpu/detail/rows_backend.hpp"
#include "gpu/detail/sampling_backend.hpp"

namespace twill::gpu::detail {

const op_backends& host_backends() {
  static constexpr op_backends table{host_linear,   portable_linear, host_attention,
                                     host_sampling, host_rows,       host_probe};
  return table;
}

const op_backends& portable_backends() {
  static constexpr op_backends table{portable_linear,   portable_linear, portable_attention,
                                     portable_sampling, portable_rows,   portable_probe};
  return table;
}

} // namespace twill::gpu::detail
