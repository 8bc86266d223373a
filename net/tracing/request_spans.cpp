#include "net/tracing/request_spans.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace twill::net {
namespace {

using std::chrono::nanoseconds;

/// Clients choose the ids of their requests; a longer id is cut to this length.
constexpr std::size_t max_id_bytes = 128;

double seconds_of(nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

void put_sampling(const traced_sampling& from, attributes& to) {
  if (from.max_tokens >= 0)
    to.emplace_back("gen_ai.request.max_tokens", std::int64_t{from.max_tokens});
  to.emplace_back("gen_ai.request.temperature", double{from.temperature});
  to.emplace_back("gen_ai.request.top_p", double{from.top_p});
  if (from.top_k > 0) to.emplace_back("gen_ai.request.top_k", std::int64_t{from.top_k});
  if (from.presence_penalty != 0)
    to.emplace_back("gen_ai.request.presence_penalty", double{from.presence_penalty});
  if (from.frequency_penalty != 0)
    to.emplace_back("gen_ai.request.frequency_penalty", double{from.frequency_penalty});
  if (from.seed) to.emplace_back("gen_ai.request.seed", static_cast<std::int64_t>(*from.seed));
  if (from.n != 1) to.emplace_back("gen_ai.request.choice.count", std::int64_t{from.n});
}

void put_times(const actors::request_summary& about, attributes& to) {
  to.emplace_back("gen_ai.latency.e2e", seconds_of(about.total));
  if (!about.queued || !about.first_token || !about.last_token) return;
  to.emplace_back("gen_ai.latency.time_in_queue", seconds_of(*about.queued));
  to.emplace_back("gen_ai.latency.time_to_first_token", seconds_of(*about.first_token));
  to.emplace_back("gen_ai.latency.time_in_model_prefill",
                  seconds_of(*about.first_token - *about.queued));
  to.emplace_back("gen_ai.latency.time_in_model_decode",
                  seconds_of(*about.last_token - *about.first_token));
  to.emplace_back("gen_ai.latency.time_in_model_inference",
                  seconds_of(*about.last_token - *about.queued));
}

attributes attributes_of(const traced_request& from) {
  const auto& about = from.about;
  attributes all{{"gen_ai.operation.name", std::string(from.chat ? "chat" : "text_completion")},
                 {"gen_ai.provider.name", std::string("twill")}};
  if (!about.model.empty()) {
    all.emplace_back("gen_ai.request.model", about.model);
    all.emplace_back("gen_ai.response.model", about.model);
  }
  if (!about.client_id.empty())
    all.emplace_back("gen_ai.request.id", about.client_id.substr(0, max_id_bytes));
  if (!about.tenant.empty()) all.emplace_back("twill.tenant", about.tenant);
  if (from.sampling) put_sampling(*from.sampling, all);
  all.emplace_back("gen_ai.usage.input_tokens", std::int64_t{about.use.prompt_tokens});
  all.emplace_back("gen_ai.usage.cache_read.input_tokens", std::int64_t{about.use.cached_tokens});
  all.emplace_back("gen_ai.usage.output_tokens", std::int64_t{about.use.completion_tokens});
  put_times(about, all);
  const std::string status(about.status);
  if (about.failed)
    all.emplace_back("error.type", status);
  else
    all.emplace_back("gen_ai.response.finish_reasons",
                     std::vector<std::string>{about.called_tools ? "tool_calls" : status});
  return all;
}

} // namespace

void append_spans(const traced_request& from, const std::function<span_id()>& fresh_id,
                  std::vector<span>& to) {
  const auto& about = from.about;
  const auto total = static_cast<std::uint64_t>(std::max<std::int64_t>(about.total.count(), 0));
  const std::uint64_t arrived = from.end_unix_ns - std::min(total, from.end_unix_ns);
  const auto at = [&](nanoseconds since) {
    return arrived +
           std::min(static_cast<std::uint64_t>(std::max<std::int64_t>(since.count(), 0)), total);
  };
  span whole;
  whole.trace = from.trace;
  whole.id = from.id;
  whole.parent = from.parent;
  whole.name = from.chat ? "chat" : "text_completion";
  if (!about.model.empty()) whole.name += " " + about.model;
  whole.kind = span_kind::server;
  whole.start_unix_ns = arrived;
  whole.end_unix_ns = from.end_unix_ns;
  whole.about = attributes_of(from);
  whole.failed = about.failed;
  to.push_back(std::move(whole));
  const auto child = [&](const char* name, nanoseconds begin, nanoseconds end) {
    span part;
    part.trace = from.trace;
    part.id = fresh_id();
    part.parent = from.id;
    part.name = name;
    part.start_unix_ns = at(begin);
    part.end_unix_ns = std::max(at(end), part.start_unix_ns);
    to.push_back(std::move(part));
  };
  child("queue", nanoseconds(0), about.queued.value_or(about.total));
  if (!about.queued || !about.first_token || !about.last_token) return;
  child("prefill", *about.queued, *about.first_token);
  child("decode", *about.first_token, *about.last_token);
}

} // namespace twill::net
