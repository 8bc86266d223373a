// request_spans: a request that has ended as the spans of its trace. Pure.
//
// One span of kind SERVER is the request, from its arrival in the engine to its end, with the names
// of OpenTelemetry's semantic conventions for generative AI and the latencies that vLLM adds to
// them. Its children `queue`, `prefill` and `decode` are where its time went; one that it did not
// reach is absent. No span holds a word of prompts or outputs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "actors/port/request_summary.hpp"
#include "net/tracing/otlp.hpp"
#include "net/tracing/trace_parent.hpp"

namespace twill::net {

/// What a trace tells of sampling_params, all of a small, fixed size.
struct traced_sampling {
  std::int32_t max_tokens = -1, n = 1, top_k = 0;
  float temperature = 1, top_p = 1, presence_penalty = 0, frequency_penalty = 0;
  std::optional<std::uint64_t> seed;
};

struct traced_request {
  trace_id trace{};
  span_id id{}, parent{};        ///< no parent: all zero
  bool chat = false;             ///< else a text is continued
  actors::request_summary about; ///< without `sampling`
  std::optional<traced_sampling> sampling;
  std::uint64_t end_unix_ns = 0;
};

/// Appends the spans of one request; `fresh_id` makes ids for its children.
void append_spans(const traced_request& from, const std::function<span_id()>& fresh_id,
                  std::vector<span>& to);

} // namespace twill::net
