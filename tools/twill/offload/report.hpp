// report: the report of `twill offload`: the lines of FlexGen's report, followed by the amounts of
// data transferred and the time of the transfers.
#pragma once

#include <cstdint>
#include <string>

#include "models/offload/job/offload_job.hpp"
#include "models/offload/plan/plan_memory.hpp"
#include "models/offload/streams/weight_stream.hpp"

namespace twill::tools {

struct offload_measured {
  models::offload::offload_sizes sizes;
  std::int64_t prefill_drawn = 0; ///< tokens sampled by prefills
  std::int64_t prompt_tokens = 0; ///< sum over all prompts
  std::int64_t output_tokens = 0; ///< tokens sampled; if `projected`, the requested ones
  double prefill_seconds = 0;
  double decode_seconds = 0;
  bool projected = false; ///< the decode time is extrapolated (--cut-gen-len)
  std::int64_t rounds = 0;
  std::int64_t memory_projected = 0;
  std::int64_t memory_measured = 0;
  models::offload::ring_stats moved; ///< transfers of weights during the run, without loading
  models::offload::transfer_stats kv_moved, hidden_moved;
  std::string simulated; ///< description of what was simulated; may be empty
};

/// Summarises a run. If `cut` (--cut-gen-len) is above 0, only `cut` tokens per sequence were
/// generated, and the decode time is extrapolated to `gen_len` tokens as in FlexGen.
offload_measured measure(const models::offload::job_report& report, std::int32_t cut,
                         std::int32_t gen_len);

std::string report_text(const offload_measured& m);

/// Describes how the time of a run divides into prompts and decoding, how much of both was spent
/// waiting for transfers, and how long transfers ran at the same time as the computation.
std::string breakdown_text(const offload_measured& m, const models::offload::job_report& report);

/// Writes a CSV file with one line per round (one sweep over all layers): its seconds, the seconds
/// spent on decoding, the seconds during which transfers ran, the bytes transferred, and the time
/// of its end. Throws client_error when the file cannot be written.
void write_rounds(const std::string& file, const models::offload::job_report& report);

} // namespace twill::tools
