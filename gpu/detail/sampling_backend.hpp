// sampling_backend: the functions behind gpu/sampling/sample.hpp, one table per backend. The device
// chooses its table once (gpu/detail/op_backends.hpp). Arguments have been checked. Executor thread
// only.
#pragma once

#include <cstdint>

#include "gpu/sampling/sample.hpp"

namespace twill::gpu::detail {

struct sampling_backend {
  void (*sample)(device& dev, const sample_args& args);
  void (*argmax)(device& dev, const tensor_ref& logits, std::int32_t* tokens);
  void (*token_logprobs)(device& dev, const tensor_ref& logits, const std::int32_t* ids,
                         float* logprobs);
};

extern const sampling_backend portable_sampling; ///< portable/backends.cpp
extern const sampling_backend host_sampling;     ///< sampling/host/sample_host.cpp

} // namespace twill::gpu::detail
