// sampling_backend: the functions behind gpu/sampling/sample.hpp, one table per backend. The device
// chooses its tables once (gpu/detail/op_backends.hpp). Arguments have been checked. Executor
// thread only.
#pragma once

#include <cstdint>

#include "gpu/detail/op.hpp"
#include "gpu/sampling/sample.hpp"

namespace twill::gpu::detail {

struct sampling_backend {
  /// The largest number of bytes of device::scratch() that the ops of this table take: see
  /// sampling_scratch_bytes(). Where the table leaves an op to the portable table, the number
  /// includes the scratch of the portable op.
  std::int64_t (*scratch_bytes)(const device& dev, std::int64_t rows, std::int64_t vocab,
                                bool any_logprobs, std::int32_t max_top);
  op<const sample_args&> sample;
  op<const tensor_ref&, std::int32_t*> argmax;                       // logits, tokens
  op<const tensor_ref&, const std::int32_t*, float*> token_logprobs; // logits, ids, logprobs
};

extern const sampling_backend portable_sampling; ///< portable/backends.cpp
extern const sampling_backend host_sampling;     ///< sampling/host/sample_host.cpp

} // namespace twill::gpu::detail
