// The host implementation of sampling: rows are divided among the device's threads, and each row is
// processed by the vectorised passes of row_passes.hpp.
#include <algorithm>
#include <cstdint>

#include "gpu/detail/sampling_backend.hpp"
#include "gpu/host/for_items.hpp"
#include "gpu/sampling/host/row_passes.hpp"
#include "gpu/sampling/host/sample_row.hpp"

namespace twill::gpu::detail {

namespace {

/// Cost of a row in float operations per entry, over several passes.
constexpr long work_per_entry = 4;

struct sample_rows {
  sample_batch batch;
  long copies; ///< rows c, c + copies, c + 2 * copies, ... share copy buffer c
  float* raw;  ///< (copies, vocab), or null

  void operator()(long copy) const {
    for (long r = copy; r < batch.rows; r += copies)
      sample_one(batch, r, raw == nullptr ? nullptr : raw + copy * batch.vocab);
  }
};

struct argmax_rows {
  tensor_ref logits;
  std::int32_t* tokens;

  void operator()(long r) const {
    const std::int32_t id = host::argmax(logits.as<const float>() + r * logits.row_stride,
                                         static_cast<std::int32_t>(logits.shape[1]));
    tokens[r] = id < 0 ? 0 : id;
  }
};

struct logprob_rows {
  tensor_ref logits;
  const std::int32_t* ids;
  float* logprobs;

  void operator()(long r) const {
    logprobs[r] = token_logprob(logits.as<const float>() + r * logits.row_stride,
                                static_cast<std::int32_t>(logits.shape[1]), ids[r]);
  }
};

/// Scratch memory for copies of rows: each thread copies one row at a time where log-probabilities
/// are asked for.
std::int64_t scratch_bytes(const device& dev, std::int64_t rows, std::int64_t vocab,
                           bool any_logprobs, std::int32_t) {
  if (!any_logprobs) return 0;
  return std::min<std::int64_t>(rows, dev.info().threads) * vocab * std::int64_t{sizeof(float)};
}

void sample(device& dev, const sample_args& args) {
  const sample_batch batch = batch_of(args);
  const long copies =
      args.any_logprobs ? std::min<long>(batch.rows, dev.info().threads) : batch.rows;
  float* raw = nullptr;
  if (args.any_logprobs)
    raw = static_cast<float*>(dev.scratch(static_cast<std::size_t>(
        scratch_bytes(dev, batch.rows, batch.vocab, args.any_logprobs, args.max_top))));
  for_host_items(dev, copies, work_per_entry * batch.vocab, sample_rows{batch, copies, raw});
}

void argmax(device& dev, const tensor_ref& logits, std::int32_t* tokens) {
  for_host_items(dev, logits.shape[0], logits.shape[1] / 2, argmax_rows{logits, tokens});
}

void token_logprobs(device& dev, const tensor_ref& logits, const std::int32_t* ids,
                    float* logprobs) {
  for_host_items(dev, logits.shape[0], work_per_entry * logits.shape[1],
                 logprob_rows{logits, ids, logprobs});
}

} // namespace

constinit const sampling_backend host_sampling{scratch_bytes, sample, argmax, token_logprobs};

} // namespace twill::gpu::detail
