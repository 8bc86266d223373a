// request_spans: converts an ended request to the spans of its trace. The functions are pure.
//
// One span of kind SERVER is the request, from its arrival in the engine to its end. Its
// attributes have the names of OpenTelemetry's semantic conventions for generative AI, together
// with the latencies that vLLM adds to them. Its child spans `queue`, `prefill` and `decode` show
// where the time was spent; a phase that the request did not reach has no span. No span contains
// text of prompts or outputs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "actors/port/request_summary.hpp"
#include "net/tracing/otlp.hpp"
#include "net/tracing/trace_parent.hpp"

namespace twill::net {

/// The members of sampling_params that a trace reports; all of them have a small, fixed size.
struct traced_sampling {
  std::int32_t max_tokens = -1, n = 1, top_k = 0;
  float temperature = 1, top_p = 1, presence_penalty = 0, frequency_penalty = 0;
  std::optional<std::uint64_t> seed;
};

struct traced_request {
  trace_id trace{};
  span_id id{}, parent{}; ///< `parent` is all zeros if there is no parent
  /// Whether the prompt is a chat; otherwise it is a text to continue.
  bool chat = false;
  actors::request_summary about; ///< the pointer `sampling` in it is null
  std::optional<traced_sampling> sampling;
  std::uint64_t end_unix_ns = 0;
};

/// Appends the spans of one request to `to`; `fresh_id` makes the ids of the child spans.
void append_spans(const traced_request& from, const std::function<span_id()>& fresh_id,
                  std::vector<span>& to);

} // namespace twill::net
