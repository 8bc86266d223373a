// workload: makes the prompts of a run. They are the same for the same seed and server.
//
// Where the backend takes token ids, random prompts are ids and have exactly the wanted lengths.
// For other backends they are texts whose lengths are adjusted to the wanted ones with the server's
// tokenizer.
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
  std::vector<double> due_s;        ///< due times of a recorded trace, one per prompt; else empty
};

/// Numbers that are mixed into the seed, so that warm-up prompts and measured prompts differ.
enum prompt_stream : std::uint64_t {
  measured_prompts = 1,
  warm_up_prompts = 2,
  ready_check_prompts = 3
};

/// The inputs that prompts are made from.
struct workload_source {
  const serve_options& options;
  bool ids = false; ///< the backend takes ids
  model_facts model;
  token_service& tokens;
  /// Called from time to time; when it returns true, no further prompts are made.
  std::function<bool()> cancelled;
};

/// The range of ids that random prompts are drawn from, both ends included: --random-id-range, else
/// the middle of the vocabulary (special and byte tokens are at its ends), else a range that the
/// vocabularies of all known model families contain.
std::pair<std::int32_t, std::int32_t> id_range(const serve_options& options,
                                               const model_facts& model);

/// Makes `n_prompts` prompts from the data set that the options name. `stream` is a prompt_stream,
/// which keeps warm-up prompts apart from measured ones. Throws std::runtime_error for a data set
/// that can't be read.
workload make_workload(const workload_source& from, std::size_t n_prompts, std::uint64_t stream);

/// Makes prompts from a file in ShareGPT's format: a list of {"conversations": [{"value": prompt},
/// {"value": answer}, ...]}. Conversations that are too short or too long by vLLM's limits are left
/// out. The output length asked for is that of the recorded answer.
workload sharegpt_workload(const workload_source& from, std::size_t n_prompts,
                           std::uint64_t stream);

/// Makes prompts from a recorded trace in Mooncake's format, one object per line: {"timestamp": ms,
/// "input_length", "output_length", "hash_ids": [...]}. Each hash id stands for a block of 512
/// prompt tokens; equal hash ids give equal tokens. Throws std::runtime_error that names the line.
workload trace_workload(const workload_source& from, std::size_t n_prompts, std::uint64_t stream);

} // namespace twill::bench
