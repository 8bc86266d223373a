// step_arrays: the description of a step (step_batch) in device memory. One asynchronous copy
// uploads all of it.
//
// Owned by the decoder's thread. The memory is allocated once for the largest step; set() allocates
// nothing. Arrays with one entry per row or sequence lie at fixed offsets. The block tables and the
// caller's bytes (step_payload) follow behind them without gaps, so that the copy is no longer than
// the step needs. The host writes all arrays into one of several pinned buffers
// (gpu/pinned_ring.hpp), one that the device has finished reading.
#pragma once

#include <cstdint>
#include <span>

#include "gpu/device.hpp"
#include "gpu/pinned_ring.hpp"
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
  std::int64_t carried_bytes = 0;   ///< most bytes of a step's payload
};

class step_arrays {
public:
  static result<step_arrays> create(gpu::device& dev, const step_limits& limits);
  /// Bytes of device memory that create() takes.
  static std::int64_t device_bytes(const step_limits& limits);

  /// Checks the step and uploads it. An invalid step is a programmer error and stops the process.
  /// Fails if the device is lost.
  result<nothing> set(gpu::device& dev, const step_batch& step, const step_payload& payload);
  /// The device address at which the payload bytes of `step` will lie.
  const unsigned char* payload_of(const step_batch& step) const;

  const gpu::ragged_batch& batch() const { return batch_; }
  const std::int32_t* tokens() const { return device_at(places_.tokens); } // (n_tokens) device
  const std::int32_t* logit_rows() const { return device_at(places_.logit_rows); } // device
  /// The block table of staged layers. // (n_sequences, max_blocks) device
  const std::int32_t* staged_table() const { return staged_table_; }
  /// Rows of the position table. // (n_tokens) device
  const std::int32_t* position_rows() const { return device_at(places_.position_rows); }

private:
  void check(const step_batch& step) const;
  void write(const step_batch& step, std::int32_t* slot) const;
  std::int64_t payload_place(const step_batch& step) const;
  std::int32_t* device_at(std::int64_t entry) const {
    return static_cast<std::int32_t*>(memory_.data()) + entry;
  }

  /// Where each array begins, counted in int32 entries from the start of `memory_`. The block
  /// tables begin at `tables`, behind all other arrays, and take at most the space up to `end`.
  struct places {
    explicit places(const step_limits& limits);
    std::int64_t tokens = 0, positions = 0, sequence_of = 0, position_rows = 0, fed_from = 0,
                 first_token = 0, kv_lengths = 0, logit_rows = 0, tables = 0, end = 0;
  };

  step_limits limits_;
  places places_{step_limits{}};
  gpu::buffer memory_;
  gpu::pinned_ring ring_;
  gpu::ragged_batch batch_;
  const std::int32_t* staged_table_ = nullptr;
};

} // namespace twill::models
