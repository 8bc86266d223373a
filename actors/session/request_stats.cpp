#include "actors/session/request_stats.hpp"

#include <chrono>
#include <utility>

namespace twill::actors {

namespace {

double seconds_of(steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

} // namespace

request_stats::request_stats(stats_board& board, std::string tenant,
                             steady_clock::time_point submitted)
    : board_(board), tenant_(std::move(tenant)), submitted_(submitted) {}

void request_stats::waits() {
  counted_waiting_ = true;
  board_.update_tenant(tenant_, model_, [](tenant_stats& s) { s.requests_waiting += 1; });
}

void request_stats::progressed(steady_clock::time_point scheduled, const usage& use,
                               steady_clock::time_point now) {
  last_token_ = now;
  if (has_run()) return;
  first_token_ = now;
  scheduled_ = scheduled;
  const double seconds = seconds_of(now - submitted_);
  board_.update([&](engine_stats& s) { observe(s.time_to_first_token_seconds, seconds); });
  board_.update_tenant(tenant_, model_, [&](tenant_stats& s) {
    if (std::exchange(counted_waiting_, false)) s.requests_waiting -= 1;
    s.requests_running += 1;
    count_prompt(s, use);
    s.cached_prompt_tokens += static_cast<std::uint64_t>(use.cached_tokens);
    observe(s.time_to_first_token_seconds, seconds);
    observe(s.request_queue_time_seconds, seconds_of(scheduled - submitted_));
  });
}

void request_stats::ended(const request_end& end) {
  count_for_server(end);
  count_for_tenant(end);
}

void request_stats::count_for_server(const request_end& end) {
  using kind = request_end::kind;
  board_.update([&](engine_stats& s) {
    switch (end.how) {
    case kind::cancelled:
      s.finished_abort += 1;
      return;
    case kind::error:
      s.finished_error += 1;
      return;
    case kind::length:
      s.finished_length += 1;
      break;
    case kind::stop:
      s.finished_stop += 1;
      break;
    }
    if (!has_run()) return;
    observe(s.e2e_request_latency_seconds, seconds_of(last_token_ - submitted_));
    observe(s.request_queue_time_seconds, seconds_of(scheduled_ - submitted_));
    observe(s.request_prefill_time_seconds, seconds_of(first_token_ - scheduled_));
    observe(s.request_decode_time_seconds, seconds_of(last_token_ - first_token_));
    observe(s.request_inference_time_seconds, seconds_of(last_token_ - scheduled_));
    observe(s.request_prompt_tokens, end.use.prompt_tokens);
    observe(s.request_generation_tokens, end.use.completion_tokens);
    observe(s.request_max_num_generation_tokens, end.longest_choice);
    observe(s.request_params_n, end.sampling->n);
    if (end.sampling->max_tokens >= 0 && !end.is_pooled)
      observe(s.request_params_max_tokens, end.sampling->max_tokens);
    // Choices are drawn in parallel, so this is the mean of one choice only if there is one.
    const auto gaps = end.longest_choice - end.earlier_tokens - 1;
    if (end.n_choices == 1 && gaps > 0)
      observe(s.request_time_per_output_token_seconds,
              seconds_of(last_token_ - first_token_) / gaps);
  });
}

void request_stats::count_for_tenant(const request_end& end) {
  using kind = request_end::kind;
  const bool whole = end.how == kind::stop || end.how == kind::length;
  board_.update_tenant(tenant_, model_, [&](tenant_stats& s) {
    if (std::exchange(counted_waiting_, false)) s.requests_waiting -= 1;
    if (has_run()) s.requests_running -= 1;
    const auto known = s.finished.find(end.status);
    if (known != s.finished.end())
      known->second += 1;
    else
      s.finished.emplace(end.status, 1);
    const auto drawn = end.use.completion_tokens - end.earlier_tokens;
    s.generation_tokens += static_cast<std::uint64_t>(drawn);
    // The prompt's tokens are counted with the first output token. A request without output (it
    // asked only for scores of its prompt, or its client left early) is counted here, because its
    // prompt is charged to the tenant's budget too.
    if (whole || end.how == kind::cancelled) count_prompt(s, end.use);
    if (!has_run() || !whole) return;
    observe(s.e2e_request_latency_seconds, seconds_of(last_token_ - submitted_));
    // Choices are drawn in parallel, so this is the mean of one choice only if there is one.
    if (drawn > 1 && end.n_choices == 1)
      observe(s.time_per_output_token_seconds,
              seconds_of(last_token_ - first_token_) / (drawn - 1));
  });
}

void request_stats::count_prompt(tenant_stats& s, const usage& use) {
  if (!std::exchange(counted_prompt_, true))
    s.prompt_tokens += static_cast<std::uint64_t>(use.prompt_tokens);
}

void request_stats::describe(request_summary& about) const {
  about.arrived = submitted_;
  if (!has_run()) return;
  about.queued = scheduled_ - submitted_;
  about.first_token = first_token_ - submitted_;
  about.last_token = last_token_ - submitted_;
}

} // namespace twill::actors
