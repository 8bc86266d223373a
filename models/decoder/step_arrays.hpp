// step_arrays: the description of a step on the device, uploaded in one copy.
//
// Owned by the decoder's thread. Sized once for the largest step; set() allocates nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/device.hpp"
#include "gpu/ragged.hpp"
#include "models/decoder/decoder.hpp"

namespace twill::models {

/// The most entries that each array of a step may have.
struct step_limits {
  std::int32_t tokens = 0;
  std::int32_t sequences = 0;
  std::int32_t logit_rows = 0;
  std::int32_t max_blocks = 0; ///< blocks of one sequence
  std::int32_t n_blocks = 0;   ///< block ids are below this
  std::int32_t block_tokens = 0;
  std::int32_t vocab_size = 0;
  std::int32_t position_offset = 0; ///< above 0: the rows of learned positions are uploaded too
  std::int32_t most_positions = 0;  ///< 0: any number
  bool staged = false;              ///< a step may have a second block table
};

class step_arrays {
public:
  static result<step_arrays> create(gpu::device& dev, const step_limits& limits);

  /// Checks the step (a wrong one is a programmer error) and uploads it.
  void set(gpu::device& dev, const step_batch& step);

  const gpu::ragged_batch& batch() const { return batch_; }
  const std::int32_t* tokens() const { return tokens_; }         // (n_tokens) device
  const std::int32_t* logit_rows() const { return logit_rows_; } // (n_logit_rows) device
  /// The block table of staged layers. // (n_sequences, max_blocks) device
  const std::int32_t* staged_table() const { return staged_table_; }
  /// Rows of the position table. // (n_tokens) device
  const std::int32_t* position_rows() const { return position_rows_; }

private:
  void check(const step_batch& step) const;
  const std::int32_t* stage(std::span<const std::int32_t> values);

  step_limits limits_;
  gpu::buffer memory_;
  std::vector<std::int32_t> staged_; ///< host copy of memory_; its capacity never changes
  gpu::ragged_batch batch_;
  const std::int32_t* tokens_ = nullptr;
  const std::int32_t* logit_rows_ = nullptr;
  const std::int32_t* position_rows_ = nullptr;
  const std::int32_t* staged_table_ = nullptr;
};

} // namespace twill::models
