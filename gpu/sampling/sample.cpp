#include "gpu/sampling/sample.hpp"

#include "gpu/detail/op_backends.hpp"
#include "gpu/detail/sampling_backend.hpp"
#include "gpu/sampling/detail/row_math.hpp"

namespace twill::gpu {

namespace {

void check_logits(const tensor_ref& logits, const char* message) {
  TWILL_ASSERT(logits.rank == 2 && logits.type == dtype::f32 && logits.shape[1] > 0 &&
                   logits.shape[1] <= detail::most_vocab,
               message);
}

} // namespace

std::int64_t sampling_scratch_bytes(const device& dev, std::int64_t rows, std::int64_t vocab,
                                    bool any_logprobs, std::int32_t max_top) {
  return dev.ops().get<detail::sampling_backend>().scratch_bytes(dev, rows, vocab, any_logprobs,
                                                                 max_top);
}

void add_needs(const sample_row& row, sample_args& args) {
  if (!detail::asks_for_draw(row)) return;
  args.any_draw = true;
  args.any_top_k = args.any_top_k || row.top_k > 0;
  args.any_top_p = args.any_top_p || row.top_p < 1;
}

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
