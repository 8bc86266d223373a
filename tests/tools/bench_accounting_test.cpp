// The accounting of twill-bench: a server that answers by script notes when it sent what, and every
// figure must equal the closed form over those notes within 1 ms or 1 %.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/tools/bench_drive.hpp"
#include "tests/tools/bench_server.hpp"
#include "tools/twill-bench/engine/metrics.hpp"

using namespace twill::bench;
using twill::tests::attempt;
using twill::tests::bench_server;
using twill::tests::options_for;
using twill::tests::prompts;
using twill::tests::run;
using twill::tests::script;
using twill::tests::sent_times;
using twill::tests::try_until;

namespace {

constexpr int n_kinds = 6, n_requests = 36, asked_tokens = 8, prompt_tokens = 7;

/// Fast and slow, one and several tokens a chunk, an early stop, a cut, an error, a refusal.
script kind_of(int i) {
  script s;
  s.first_ms = 30;
  s.gap_ms = 10;
  s.n_chunks = asked_tokens;
  switch (i % n_kinds) {
  case 1:
    s.first_ms = 60;
    s.gap_ms = 25;
    s.n_chunks = 4;
    s.tokens_per_chunk = 2;
    break;
  case 2:
    s.n_chunks = 3;
    s.finish = "stop";
    break;
  case 3:
    s.cut_after = 2;
    break;
  case 4:
    s.error_after = 1;
    break;
  case 5:
    s.n_chunks = 1;
    s.finish = "stop";
    break;
  default:
    break;
  }
  return s;
}

bool fails(int i) {
  return i % n_kinds == 3 || i % n_kinds == 4;
}

double ms(std::chrono::steady_clock::duration span) {
  return std::chrono::duration<double, std::milli>(span).count();
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

/// By sorting and interpolating, written anew.
double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double at = share * double(values.size() - 1);
  const double low = std::floor(at), high = std::ceil(at);
  return values[std::size_t(low)] * (1 - (at - low)) + values[std::size_t(high)] * (at - low);
}

struct expected {
  std::vector<double> ttft, tpot, itl, e2el, per_token, per_output_token;
  double tokens = 0, duration_ms = 0;
  std::size_t good = 0;
};

expected from(const std::vector<sent_times>& log, double ttft_limit_ms, double e2el_limit_ms) {
  expected out;
  out.duration_ms = ms(log.back().chunks.back() - log.front().received);
  for (int i = 0; i < n_requests; ++i) {
    if (fails(i)) continue;
    const sent_times& one = log[std::size_t(i)];
    const double tokens = kind_of(i).n_chunks * kind_of(i).tokens_per_chunk;
    const double ttft = ms(one.chunks.front() - one.received);
    const double latency = ms(one.chunks.back() - one.received);
    out.ttft.push_back(ttft);
    out.e2el.push_back(latency);
    if (tokens > 1) out.tpot.push_back((latency - ttft) / (tokens - 1));
    for (std::size_t c = 1; c < one.chunks.size(); ++c)
      out.itl.push_back(ms(one.chunks[c] - one.chunks[c - 1]));
    out.per_token.push_back(latency / (prompt_tokens + tokens));
    out.per_output_token.push_back(latency / tokens);
    out.tokens += tokens;
    out.good += ttft <= ttft_limit_ms && latency <= e2el_limit_ms;
  }
  return out;
}

bool near(double got, double wanted) {
  return std::fabs(got - wanted) <= std::max(1.0, 0.01 * wanted);
}

bool near_rate(double got, double wanted) {
  return std::fabs(got - wanted) <= 0.01 * wanted;
}

bool near(const summary& got, const std::vector<double>& wanted) {
  return near(got.mean, mean(wanted)) && near(got.median, quantile(wanted, 0.5)) &&
         near(got.percentiles.at(0), quantile(wanted, 0.9)) &&
         near(got.percentiles.at(1), quantile(wanted, 0.99));
}

} // namespace

TEST_CASE("every figure equals its closed form within 1 ms or 1 percent") {
  const std::string backend = GENERATE("openai", "llama.cpp", "twill-stream");
  CAPTURE(backend);
  constexpr double ttft_limit_ms = 45, e2el_limit_ms = 80;
  try_until([&] {
    bench_server server([](int i) { return kind_of(i); });
    serve_options options = options_for(server, backend);
    options.max_concurrency = 1;
    options.metric_percentiles = {90, 99};
    options.goodput_ms = {{"ttft", "45"}, {"e2el", "80"}};
    const run_outcome got = run(options, prompts(n_requests, asked_tokens));
    const serve_metrics m = compute_metrics(got, options);
    const auto log = server.log();
    REQUIRE(log.size() == n_requests);
    const expected wanted = from(log, ttft_limit_ms, e2el_limit_ms);

    // Counts do not depend on clocks.
    CHECK(m.completed == 24);
    CHECK(m.failed == 12);
    CHECK(m.error_kinds.at("reset") == 6);
    CHECK(m.error_kinds.at("server") == 6);
    CHECK(m.output_tokens == std::int64_t(wanted.tokens));
    CHECK(m.input_tokens == 24 * prompt_tokens);
    CHECK(m.short_outputs == 12);
    if (backend != "llama.cpp") { // whose scripted end is always a limit
      CHECK(m.stopped_early == 12);
      CHECK(m.finish_reasons.at("stop") == 12);
      CHECK(m.finish_reasons.at("length") == 12);
    }
    const double seconds = wanted.duration_ms / 1e3;
    const bool timely =
        near(m.ttft_ms, wanted.ttft) && near(m.tpot_ms, wanted.tpot) &&
        near(m.itl_ms, wanted.itl) && near(m.e2el_ms, wanted.e2el) &&
        near(m.mean_ms_per_token, mean(wanted.per_token)) &&
        near(m.mean_ms_per_output_token, mean(wanted.per_output_token)) &&
        near_rate(m.request_throughput, 24 / seconds) &&
        near_rate(m.output_throughput, wanted.tokens / seconds) &&
        near_rate(m.total_throughput, (wanted.tokens + 24 * prompt_tokens) / seconds) &&
        near_rate(m.request_goodput, double(wanted.good) / seconds);
    return attempt{timely, got.client.loop_lag_p99_ms};
  });
}

TEST_CASE("in an open loop the wait at the client is in the figures from the due time") {
  // One server slot of 40 ms, a request due every 10 ms: request i waits 30 * i ms at the client.
  constexpr int n = 10;
  try_until([&] {
    bench_server server([](int) {
      script s;
      s.first_ms = 40;
      s.n_chunks = 1;
      return s;
    });
    serve_options options = options_for(server, "openai");
    options.max_concurrency = 1;
    options.request_rate_per_s = 100;
    std::vector<double> due_s;
    for (int i = 0; i < n; ++i)
      due_s.push_back(0.01 * i);
    const run_outcome got = run(options, prompts(n, 1), due_s);
    const serve_metrics m = compute_metrics(got, options);
    const auto log = server.log();
    std::vector<double> from_due, waits;
    for (int i = 0; i < n; ++i) {
      const double since_first = ms(log[std::size_t(i)].received - log[0].received);
      waits.push_back(since_first - 10.0 * i);
      from_due.push_back(ms(log[std::size_t(i)].chunks.front() - log[0].received) - 10.0 * i);
    }
    CHECK(m.queue_ms.mean >= 30.0 * (n - 1) / 2 - 1);
    CHECK(m.ttft_with_queue_ms.mean == Approx(m.queue_ms.mean + m.ttft_ms.mean));
    CHECK(m.e2el_with_queue_ms.mean == Approx(m.queue_ms.mean + m.e2el_ms.mean));
    const bool timely = near(m.queue_ms.mean, mean(waits)) &&
                        near(m.queue_ms.median, quantile(waits, 0.5)) &&
                        near(m.ttft_with_queue_ms.mean, mean(from_due)) &&
                        near(m.e2el_with_queue_ms.mean, mean(from_due));
    return attempt{timely, got.client.loop_lag_p99_ms};
  });
}
