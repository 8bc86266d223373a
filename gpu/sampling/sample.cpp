#include "gpu/sampling/sample.hpp"

#include <algorithm>

#include "gpu/detail/launch.hpp"
#include "gpu/sampling/detail/sample_team.hpp"

namespace twill::gpu {

namespace {

/// Cost of a row in float operations, several passes over the vocabulary.
constexpr long work_per_entry = 4;

struct host_sample_slots {
  detail::sample_batch batch;
  long slots; ///< rows slot, slot + slots, ... share one copy buffer
  float* raw; ///< (slots, vocab), or null

  void operator()(long slot) const {
    for (long r = slot; r < batch.rows; r += slots)
      detail::sample_one(detail::host_passes{}, batch, r,
                         raw == nullptr ? nullptr : raw + slot * batch.vocab);
  }
};

struct host_argmax_rows {
  tensor_ref logits;
  std::int32_t* tokens;

  void operator()(long r) const {
    const std::int32_t id = host::argmax(logits.as<const float>() + r * logits.row_stride,
                                         static_cast<std::int32_t>(logits.shape[1]));
    tokens[r] = id < 0 ? 0 : id;
  }
};

struct host_logprob_rows {
  tensor_ref logits;
  const std::int32_t* ids;
  float* logprobs;

  void operator()(long r) const {
    detail::token_logprob(detail::host_passes{}, logits.as<const float>() + r * logits.row_stride,
                          static_cast<std::int32_t>(logits.shape[1]), ids[r], logprobs + r);
  }
};

void check_logits(const tensor_ref& logits, const char* message) {
  TWILL_ASSERT(logits.rank == 2 && logits.type == dtype::f32 && logits.shape[1] > 0 &&
                   logits.shape[1] < detail::every_tie,
               message);
}

} // namespace

void sample(device& dev, const sample_args& args) {
  check_logits(args.logits, "sample: logits must be (n, vocab) f32");
  const long n = args.logits.shape[0];
  if (n == 0) return;
  const long vocab = args.logits.shape[1];
  const long at_once = detail::on_host ? dev.info().threads : detail::sample_teams_at_once;
  const long slots = args.any_logprobs ? std::min(n, at_once) : n;
  float* raw = nullptr;
  if (args.any_logprobs)
    raw = static_cast<float*>(dev.scratch(static_cast<std::size_t>(slots * vocab) * sizeof(float)));
  if constexpr (detail::on_host)
    detail::for_host_items(dev, "sample", slots, work_per_entry * vocab,
                           host_sample_slots{detail::batch_of(args), slots, raw});
  else
    detail::launch_sample_team(args, slots, raw);
}

void argmax(device& dev, tensor_ref logits, std::int32_t* tokens) {
  check_logits(logits, "argmax: logits must be (n, vocab) f32");
  if constexpr (detail::on_host)
    detail::for_host_items(dev, "argmax", logits.shape[0], logits.shape[1] / 2,
                           host_argmax_rows{logits, tokens});
  else
    detail::launch_argmax_team(logits, tokens);
}

void token_logprobs(device& dev, tensor_ref logits, const std::int32_t* ids, float* logprobs) {
  check_logits(logits, "token_logprobs: logits must be (n, vocab) f32");
  if constexpr (detail::on_host)
    detail::for_host_items(dev, "token_logprobs", logits.shape[0], work_per_entry * logits.shape[1],
                           host_logprob_rows{logits, ids, logprobs});
  else
    detail::launch_token_logprobs_team(logits, ids, logprobs);
}

} // namespace twill::gpu
