// The plain structs that express a decision of the scheduler about a step.
#pragma once

#include <cstdint>
#include <vector>

namespace twill::actors {

/// Identifies a sequence. Ids rise in the order of arrival.
using sequence_id = std::uint64_t;

/// One sequence's part of a step: positions [first_position, first_position + n_tokens).
struct planned_row {
  sequence_id id = 0;
  std::int32_t first_position = 0;
  std::int32_t n_tokens = 0;
  bool draws = false; ///< the logits of the row's last token yield a new token
};

/// Blocks to add to a lease.
struct lease_growth {
  sequence_id id = 0;
  std::int32_t n_blocks = 0;
};

/// A lease that begins by sharing the first n_blocks of the lease `from`.
struct lease_fork {
  sequence_id id = 0;
  sequence_id from = 0;
  std::int32_t n_blocks = 0;
};

/// A block that is added to the blocks of sequence `id` as a copy of block number `column` of
/// sequence `from`. The bytes are copied once the step being planned is done.
struct lease_copy {
  sequence_id id = 0;
  sequence_id from = 0;
  std::int32_t column = 0;
};

/// What the prefix cache has of a candidate for admission: full blocks with which it may begin.
struct prefix_hit {
  sequence_id id = 0;
  /// cached full blocks; at most the full blocks of its known tokens without the last token
  std::int32_t n_blocks = 0;
  std::int32_t n_evictable =
      0; ///< the part of n_blocks that count as free and that no earlier hit has
  /// The number of blocks after the first n_blocks that also count as computed: before the step,
  /// their bytes are copied from host memory into newly granted blocks.
  std::int32_t n_loaded = 0;
  /// False: the cached blocks may have been evicted, so the sequence must be looked up again before
  /// it is admitted.
  bool kept = true;
};

/// The blocks that are free for a plan. Only `ready` of them can be given to sequences in it; the
/// pool must grant the others first, for a later plan.
struct free_blocks {
  free_blocks(std::int64_t n) : all(n), ready(n) {} // NOLINT(*-explicit-*): all are ready
  free_blocks(std::int64_t n, std::int64_t n_ready, bool is_exact = true)
      : all(n), ready(n_ready), exact(is_exact) {}

  std::int64_t all;   ///< free blocks, ready or not
  std::int64_t ready; ///< blocks that were granted and can be used at once
  bool exact = true;  ///< false: more may be free, since sequences have given up blocks
};

/// The blocks that running sequences need to decode in the steps after a plan.
struct decode_blocks {
  std::int64_t of_one_step = 0;  ///< for one more token of each sequence
  std::int64_t of_two_steps = 0; ///< for two more tokens of each sequence
};

/// What scheduler::plan() decided. `rows` may be empty.
struct step_decision {
  std::vector<sequence_id> opened; ///< sequences that entered the running set
  std::vector<planned_row> rows;   ///< rows to compute; no sequence occurs twice
  /// leases that begin with the blocks of a prefix_hit; applied before grows
  std::vector<sequence_id> reuses;
  std::vector<lease_growth> grows;
  std::vector<lease_fork> forks;
  std::vector<lease_copy> copies; ///< applied after forks
  std::int32_t preempted = 0;
};

/// A sequence that left the running set or the engine, and to which no outstanding step refers.
struct released_sequence {
  sequence_id id = 0;
  bool leased = false; ///< its lease must be dropped
  bool opened = false; ///< the executor has a state for it
  bool gone = false;   ///< it left for good; otherwise it waits to be admitted again
};

} // namespace twill::actors
