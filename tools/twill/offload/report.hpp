// The report of `twill offload`: FlexGen's lines, and below them what moved and what it took.
#pragma once

#include <cstdint>
#include <string>

#include "models/offload/job/job_memory.hpp"
#include "models/offload/job/offload_job.hpp"
#include "models/offload/plan/plan_memory.hpp"
#include "models/offload/streams/weight_stream.hpp"

namespace twill::tools {

struct offload_measured {
  models::offload::offload_sizes sizes;
  std::int64_t prefill_drawn = 0; ///< tokens that prefills drew, one per prompt
  std::int64_t prompt_tokens = 0; ///< of all prompts
  std::int64_t output_tokens = 0; ///< drawn, or with a projection: asked for
  double prefill_seconds = 0;
  double decode_seconds = 0;
  bool projected = false; ///< decode is extrapolated (--cut-gen-len)
  std::int64_t rounds = 0;
  std::int64_t memory_projected = 0;
  std::int64_t memory_measured = 0;
  models::offload::ring_stats moved; ///< in the run alone
  models::offload::transfer_stats kv_moved, hidden_moved;
  std::string simulated; ///< what was acted out; empty: nothing
};

/// The measured run; `cut` with `gen_len` projects the decode as FlexGen does.
offload_measured measure(const models::offload::job_report& report, std::int32_t cut,
                         std::int32_t gen_len);

std::string report_text(const offload_measured& m);

/// What the seconds of a run were spent on: prompts and decoding, of these waiting for transfers,
/// and transfers under way beside them.
std::string breakdown_text(const offload_measured& m, const models::offload::job_report& report);

/// CSV: each round's seconds, the part of them that was decoding, and those with transfers under
/// way. client_error when it cannot be written.
void write_rounds(const std::string& file, const models::offload::job_report& report);

} // namespace twill::tools
