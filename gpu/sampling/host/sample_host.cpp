// sampling's host form: rows are shared out among the device's threads, each row is walked by the
// vectorised passes of row_passes.hpp.
#include <algorithm>
#include <cstdint>

#include "gpu/detail/sampling_backend.hpp"
#include "gpu/host/for_items.hpp"
#include "gpu/sampling/detail/sample_row.hpp"
#include "gpu/sampling/host/row_passes.hpp"

namespace twill::gpu::detail {

namespace {

/// Cost of a row in float operations per entry, over several passes.
constexpr long work_per_entry = 4;

/// The passes over a row as one host thread does them.
struct host_passes {
  template <class F>
  void single(const F& f) const {
    f();
  }
  template <class F>
  void each(std::int32_t n, const F& f) const {
    for (std::int32_t i = 0; i < n; ++i)
      f(i);
  }
  std::int32_t argmax(const float* x, std::int32_t n) const { return host::argmax(x, n); }
  float largest(const float* x, std::int32_t n) const { return host::largest(x, n); }
  double sum_exp(const float* x, std::int32_t n, float max) const {
    return host::sum_exp(x, n, max);
  }
  void to_weights(float* x, std::int32_t n, float max, float inverse_temperature) const {
    host::to_weights(x, n, max, inverse_temperature);
  }
  host::weight_tally tally(const float* w, std::int32_t n, const float (&t)[3],
                           bool with_mass) const {
    return host::tally(w, n, t, with_mass);
  }
  double mass_of(const float* w, std::int32_t n, host::weight_cut cut) const {
    return host::mass_of(w, n, cut);
  }
  std::int32_t draw(const float* w, std::int32_t n, host::weight_cut cut, double target) const {
    return host::draw(w, n, cut, target);
  }
  std::int32_t nth_equal(const float* w, std::int32_t n, float value, std::int32_t nth) const {
    return host::nth_equal(w, n, value, nth);
  }
  std::int32_t next_largest(const float* x, std::int32_t n, float value, std::int32_t id) const {
    return host::next_largest(x, n, value, id);
  }
};

struct sample_rows {
  sample_batch batch;
  long copies; ///< rows c, c + copies, c + 2 * copies, ... share copy buffer c
  float* raw;  ///< (copies, vocab), or null

  void operator()(long copy) const {
    for (long r = copy; r < batch.rows; r += copies)
      sample_one(host_passes{}, batch, r, raw == nullptr ? nullptr : raw + copy * batch.vocab);
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
    token_logprob(host_passes{}, logits.as<const float>() + r * logits.row_stride,
                  static_cast<std::int32_t>(logits.shape[1]), ids[r], logprobs + r);
  }
};

void sample(device& dev, const sample_args& args) {
  const sample_batch batch = batch_of(args);
  const long copies =
      args.any_logprobs ? std::min<long>(batch.rows, dev.info().threads) : batch.rows;
  float* raw = nullptr;
  if (args.any_logprobs)
    raw = static_cast<float*>(
        dev.scratch(static_cast<std::size_t>(copies * batch.vocab) * sizeof(float)));
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

constinit const sampling_backend host_sampling{sample, argmax, token_logprobs};

} // namespace twill::gpu::detail
