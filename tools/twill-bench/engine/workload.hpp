// workload: the prompts of a run, the same for the same seed and server.
//
// Random prompts are ids where the backend takes ids: their lengths are exact by construction.
// Elsewhere they are text, aligned to the wanted length by the server's own tokenizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/twill-bench/engine/options.hpp"
#include "tools/twill-bench/engine/token_service.hpp"
#include "tools/twill-bench/protocols/protocol.hpp"

namespace twill::bench {

struct workload {
  std::vector<prompt> prompts;
  std::vector<std::string> remarks; ///< what a reader should know about the lengths
  std::vector<double> due_s;        ///< of a recorded trace, one per prompt; else empty
};

/// Streams of the seed, so that warm-ups and measured prompts differ.
enum prompt_stream : std::uint64_t {
  measured_prompts = 1,
  warm_up_prompts = 2,
  ready_check_prompts = 3
};

/// What prompts are made from.
struct workload_source {
  const serve_options& options;
  bool ids = false; ///< the backend takes ids
  model_facts model;
  token_service& tokens;
  std::function<bool()> cancelled; ///< asked now and then; true ends the making early
};

/// The ids that random prompts are drawn from, both ends included: --random-id-range, else the
/// middle of the vocabulary (special and byte tokens sit at its ends), else what every known family
/// has.
std::pair<std::int32_t, std::int32_t> id_range(const serve_options& options,
                                               const model_facts& model);

/// `stream` keeps warm-up prompts apart from measured ones. Throws std::runtime_error for a data
/// set that can't be read.
workload make_workload(const workload_source& from, std::size_t n_prompts, std::uint64_t stream);

/// ShareGPT's format: a list of {"conversations": [{"value": prompt}, {"value": answer}, ...]}.
/// Too short and too long ones are left out by vLLM's limits; asks for the answer's length.
workload sharegpt_workload(const workload_source& from, std::size_t n_prompts,
                           std::uint64_t stream);

/// A recorded trace in Mooncake's form, one object per line: {"timestamp": ms, "input_length",
/// "output_length", "hash_ids": [...]}. Each hash id stands for a block of 512 prompt tokens that
/// is the same wherever the id is. Throws std::runtime_error naming the line.
workload trace_workload(const workload_source& from, std::size_t n_prompts, std::uint64_t stream);

} // namespace twill::bench
