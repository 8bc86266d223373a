// sampling_backend: the functions behind gpu/sampling/sample.hpp, one table per backend. The device
// chooses its tables once (gpu/detail/op_backends.hpp). Arguments have been checked. Executor
// thread only.
#pragma once

#include <cstdint>

#include "gpu/detail/op.hpp"
#include "gpu/sampling/sample.hpp"

namespace twill::gpu::detail {

struct sampling_backend {
  /// The most of device::scratch() that these ops take: see sampling_scratch_bytes(). A table that
  /// leaves one to the portable table answers for that one, too.
  std::int64_t (*scratch_bytes)(const device& dev, std::int64_t rows, std::int64_t vocab,
                                bool any_logprobs, std::int32_t max_top);
  op<const sample_args&> sample;
  op<const tensor_ref&, std::int32_t*> argmax;                       // logits, tokens
  op<const tensor_ref&, const std::int32_t*, float*> token_logprobs; // logits, ids, logprobs
};

extern const sampling_backend portable_sampling; ///< portable/backends.cpp
extern const sampling_backend host_sampling;     ///< sampling/host/sample_host.cpp

} // namespace twill::gpu::detail
