// device_sampler: draws a step's tokens and scores prompt tokens on the device, through
// gpu/sampling/sample.hpp.
//
// One thread (the executor's). It owns the device arrays that describe the rows. All memory of the
// device is taken by create(): a step whose penalties, biases or masks do not fit the arrays at
// once is drawn in several passes. It must not outlive its device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "actors/executor/step_runner.hpp"
#include "gpu/device.hpp"
#include "gpu/sampling/sample.hpp"

namespace twill::actors {

class device_sampler {
public:
  static gpu::result<device_sampler> create(gpu::device& dev, std::int32_t max_rows,
                                            std::int32_t max_top, std::int32_t vocab_size);

  /// Draws one token per row and waits for the device. `logits` is (n_draws, vocab) f32 and is
  /// overwritten.
  gpu::result<nothing> draw(gpu::device& dev, gpu::tensor_ref logits,
                            std::span<const draw_spec> draws, step_samples& out);
  /// The log-probability of each token in its row, and the likeliest ones, and waits for the
  /// device. `logits` is (n_scores, vocab) f32 and stays as it is.
  gpu::result<nothing> score(gpu::device& dev, gpu::tensor_ref logits,
                             std::span<const score_spec> scores, step_samples& out);

private:
  device_sampler() = default;
  std::size_t n_fitting(std::span<const draw_spec> draws) const;
  void upload_rows(gpu::device& dev, std::span<const draw_spec> draws);
  void download(gpu::device& dev, std::size_t n, bool logprobs, step_samples& out) const;

  std::int32_t max_top_ = 0;
  gpu::buffer rows_;                       // (max_rows) sample_row
  gpu::buffer tokens_;                     // (max_rows) i32
  gpu::buffer logprobs_;                   // (max_rows) f32
  gpu::buffer top_ids_;                    // (max_rows, max_top) i32
  gpu::buffer top_logprobs_;               // (max_rows, max_top) f32
  gpu::buffer counts_;                     // token_count of all rows, one row after the other
  gpu::buffer biases_;                     // token_bias of all rows, one row after the other
  gpu::buffer masks_;                      // masks of the rows that have one
  std::vector<gpu::sample_row> host_rows_; ///< host copies, reused from step to step
  std::vector<gpu::token_count> host_counts_;
  std::vector<gpu::token_bias> host_biases_;
  std::vector<std::uint32_t> host_masks_;
  std::vector<std::int32_t> host_ids_;
};

} // namespace twill::actors
