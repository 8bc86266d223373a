#include "gpu/sampling/sample.hpp"

#include "gpu/detail/op_backends.hpp"
#include "gpu/detail/sampling_backend.hpp"
#include "gpu/sampling/detail/sample_row.hpp"

namespace twill::gpu {

namespace {

void check_logits(const tensor_ref& logits, const char* message) {
  TWILL_ASSERT(logits.rank == 2 && logits.type == dtype::f32 && logits.shape[1] > 0 &&
                   logits.shape[1] < detail::every_tie,
               message);
}

} // namespace

void sample(device& dev, const sample_args& args) {
  check_logits(args.logits, "sample: logits must be (n, vocab) f32");
  if (args.logits.shape[0] > 0) detail::run_op<&detail::sampling_backend::sample>(dev, args);
}

void argmax(device& dev, tensor_ref logits, std::int32_t* tokens) {
  check_logits(logits, "argmax: logits must be (n, vocab) f32");
  detail::run_op<&detail::sampling_backend::argmax>(dev, logits, tokens);
}

void token_logprobs(device& dev, tensor_ref logits, const std::int32_t* ids, float* logprobs) {
  check_logits(logits, "token_logprobs: logits must be (n, vocab) f32");
  detail::run_op<&detail::sampling_backend::token_logprobs>(dev, logits, ids, logprobs);
}

} // namespace twill::gpu
