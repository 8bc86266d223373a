// device_sampler: draws a step's tokens and scores prompt tokens on the device, through
// gpu/sampling/sample.hpp.
//
// One thread (the executor's). The sampler owns the device arrays that describe how each row of
// logits is sampled; create() allocates all of its device memory. The description of a step's draws
// is sent as part of the step's own upload (its payload) if there is room for it. Masks (bitmaps of
// the tokens that may be drawn) are sent separately, because they are filled while the step runs.
// Drawn tokens come back in one copy. A step whose penalties, biases or masks do not fit the arrays
// is drawn in several passes. The sampler must not outlive its device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "actors/executor/step_runner.hpp"
#include "gpu/copy_stream.hpp"
#include "gpu/device.hpp"
#include "gpu/pinned_ring.hpp"
#include "gpu/sampling/sample.hpp"

namespace twill::actors {

class device_sampler {
public:
  static gpu::result<device_sampler> create(gpu::device& dev, std::int32_t max_rows,
                                            std::int32_t max_top, std::int32_t vocab_size);
  /// Bytes of device memory that create() allocates, and bytes of scratch memory that it reserves.
  static std::int64_t array_bytes(std::int32_t max_rows, std::int32_t max_top,
                                  std::int32_t vocab_size);
  static std::int64_t scratch_bytes(const gpu::device& dev, std::int32_t max_rows,
                                    std::int32_t max_top, std::int32_t vocab_size);

  /// The most bytes that describe() returns.
  static std::int64_t most_described_bytes(std::int32_t max_rows);
  /// Returns the bytes that describe `draws` to the next draw(). They are sent to device address
  /// `at` as a part of the step's payload (models::step_payload). Empty if the draws need no
  /// description or if it is too large for the payload. Valid until the next call.
  std::span<const unsigned char> describe(std::span<const draw_spec> draws,
                                          const unsigned char* at);
  /// The tokens of the last draw(). // (n_draws) device
  const std::int32_t* drawn() const { return drawn_; }

  /// Draws one token from each row of logits and waits for the device. `logits` is (n_draws, vocab)
  /// f32 and is overwritten.
  gpu::result<nothing> draw(gpu::device& dev, gpu::tensor_ref logits,
                            std::span<const draw_spec> draws, step_samples& out);
  /// The two halves of draw(). launch() starts the draws and the copy of their results to the host.
  /// collect() waits for the oldest launched draws and returns their results. Two launches may
  /// precede a collect().
  gpu::result<nothing> launch(gpu::device& dev, gpu::tensor_ref logits,
                              std::span<const draw_spec> draws);
  void collect(step_samples& out);
  /// Computes, for each row of logits, the log-probability of the prompt token in `scores` and the
  /// most likely tokens. Waits for the device. `logits` is (n_scores, vocab) f32 and is not
  /// changed.
  gpu::result<nothing> score(gpu::device& dev, gpu::tensor_ref logits,
                             std::span<const score_spec> scores, step_samples& out);

private:
  device_sampler() = default;
  /// Pointers to the results of n rows, which are arrays one behind the other.
  struct result_arrays {
    float* scores;         // (n)
    std::int32_t* tokens;  // (n)
    float* logprobs;       // (n)
    std::int32_t* top_ids; // (n, columns)
    float* top_logprobs;   // (n, columns)
    unsigned char* end;
  };
  result_arrays arrays_in(void* memory, std::size_t n, std::int32_t columns) const;
  std::size_t n_fitting(std::span<const draw_spec> draws) const;
  void describe_rows(std::span<const draw_spec> draws);
  void point_rows(std::span<const draw_spec> draws, const gpu::token_count* counts,
                  const gpu::token_bias* biases);
  gpu::result<nothing> send_masks(gpu::device& dev, std::span<const draw_spec> draws);
  void upload_rows(gpu::device& dev, std::span<const draw_spec> draws);
  /// Begins to copy results from device address `from` up to `to` into the host buffer of the
  /// newest step.
  void fetch(gpu::device& dev, const void* from, const void* to);
  unsigned char* fetched_by(std::size_t step) const {
    return fetched_.data() + step % most_launched * results_.bytes();
  }

  std::int32_t max_top_ = 0;
  const std::int32_t* drawn_ = nullptr;
  gpu::buffer rows_;                       // (max_rows) sample_row
  gpu::buffer results_;                    // result_arrays
  gpu::host_buffer fetched_;               // (most_launched) result_arrays on the host, pinned
  std::unique_ptr<gpu::marker> fetch_end_; ///< marks the end of the last copy
  /// The layout of a step's results in host memory.
  struct launched_draws {
    std::size_t rows = 0;
    std::int32_t columns = 0;
    bool any_logprobs = false;
  };
  static constexpr std::size_t most_launched = 2;
  std::array<launched_draws, most_launched> launched_; ///< indexed by step number
  std::size_t n_launched_ = 0, n_collected_ = 0;
  gpu::buffer counts_;             // token_count of all rows, one row after the other
  gpu::buffer biases_;             // token_bias of all rows, one row after the other
  gpu::buffer masks_;              // masks of the rows that have one
  gpu::pinned_ring mask_ring_;     ///< masks on their way to the device
  std::size_t described_rows_ = 0; ///< rows described by the last describe(), for the next draw()
  const unsigned char* described_at_ = nullptr;
  std::vector<unsigned char> description_; ///< host copies, reused from step to step
  std::vector<gpu::sample_row> host_rows_;
  std::vector<gpu::token_count> host_counts_;
  std::vector<gpu::token_bias> host_biases_;
  std::vector<std::uint32_t> host_masks_;
  std::vector<std::int32_t> host_ids_;
};

} // namespace twill::actors
