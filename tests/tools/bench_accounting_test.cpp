// The accounting of twill-bench, checked exactly: runs on simulated time, where every figure has a
// closed formula, and runs over sockets, compared with the times that the server itself recorded.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/tools/bench_drive.hpp"
#include "tests/tools/bench_server.hpp"
#include "tools/twill-bench/engine/arrivals.hpp"
#include "tools/twill-bench/engine/metrics.hpp"

using namespace twill::bench;
using twill::tests::bench_server;
using twill::tests::made_up_options;
using twill::tests::options_for;
using twill::tests::prompt_tokens;
using twill::tests::prompts;
using twill::tests::run;
using twill::tests::run_on_made_up_time;
using twill::tests::script;
using twill::tests::sent_times;

namespace {

constexpr int n_kinds = 7, n_requests = 42, asked_tokens = 8;

/// Scripts: fast, slow, several tokens a chunk, an early stop, a cut, an error, a refusal.
script kind_of(int i, const std::string& backend) {
  script s;
  s.first_ms = 30;
  s.gap_ms = 10;
  s.n_chunks = asked_tokens;
  switch (i % n_kinds) {
  case 1:
    s.first_ms = 60;
    s.gap_ms = 25;
    if (backend == "tgi") break; // its events have one token each
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
    s.end_ms = backend == "tgi" ? 0 : 5; // tgi's end is part of the last chunk
    break;
  case 6:
    s.status = 503;
    break;
  default:
    break;
  }
  return s;
}

bool fails(int i) {
  const int kind = i % n_kinds;
  return kind == 3 || kind == 4 || kind == 6;
}

double spent_ms(int i, const std::string& backend) {
  const script s = kind_of(i, backend);
  if (s.status != 200) return 0;
  if (s.cut_after >= 0) return s.first_ms + s.gap_ms * (s.cut_after - 1);
  if (s.error_after >= 0) return s.first_ms + s.gap_ms * (s.error_after - 1);
  return s.first_ms + s.gap_ms * (s.n_chunks - 1) + s.end_ms;
}

double ms(clock::duration span) {
  return std::chrono::duration<double, std::milli>(span).count();
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

/// A quantile by sorting and interpolation, independent of the tool's own code.
double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double at = share * double(values.size() - 1);
  const double low = std::floor(at), high = std::ceil(at);
  return values[std::size_t(low)] * (1 - (at - low)) + values[std::size_t(high)] * (at - low);
}

/// Equal but for the rounding of gaps between tokens, which are kept as floats.
Approx exactly(double value) {
  return Approx(value).epsilon(1e-6);
}

void check(const summary& result, const std::vector<double>& wanted) {
  CHECK(result.mean == exactly(mean(wanted)));
  CHECK(result.median == exactly(quantile(wanted, 0.5)));
  CHECK(result.percentiles.at(0) == exactly(quantile(wanted, 0.9)));
  CHECK(result.percentiles.at(1) == exactly(quantile(wanted, 0.99)));
}

std::vector<double> every(int n, double gap_s) {
  std::vector<double> out;
  for (int i = 0; i < n; ++i)
    out.push_back(gap_s * i);
  return out;
}

} // namespace

TEST_CASE("every figure equals its closed form") {
  const std::string backend =
      GENERATE("openai", "openai-chat", "llama.cpp", "tgi", "twill-stream", "responses-ws");
  CAPTURE(backend);
  serve_options options = made_up_options(backend);
  options.goodput_ms = {{"ttft", "45"}, {"e2el", "80"}};
  const run_outcome result = run_on_made_up_time(options, prompts(n_requests, asked_tokens),
                                                 [&](int i) { return kind_of(i, backend); });
  const serve_metrics m = compute_metrics(result, options);

  std::vector<double> ttft, tpot, itl, e2el, per_token, per_output_token;
  double tokens = 0, duration_ms = 0;
  int good = 0;
  for (int i = 0; i < n_requests; ++i) {
    duration_ms += spent_ms(i, backend);
    if (fails(i)) continue;
    const script s = kind_of(i, backend);
    const double n = s.n_chunks * s.tokens_per_chunk;
    const double latency = spent_ms(i, backend);
    ttft.push_back(s.first_ms);
    e2el.push_back(latency);
    if (n > 1) tpot.push_back((latency - s.first_ms) / (n - 1));
    itl.insert(itl.end(), std::size_t(s.n_chunks - 1), s.gap_ms);
    per_token.push_back(latency / (prompt_tokens + n));
    per_output_token.push_back(latency / n);
    tokens += n;
    good += s.first_ms <= 45 && latency <= 80;
  }
  check(m.ttft_ms, ttft);
  check(m.tpot_ms, tpot);
  check(m.itl_ms, itl);
  check(m.e2el_ms, e2el);
  CHECK(m.mean_ms_per_token == exactly(mean(per_token)));
  CHECK(m.mean_ms_per_output_token == exactly(mean(per_output_token)));
  CHECK(result.duration_s * 1e3 == exactly(duration_ms));
  CHECK(m.request_throughput * duration_ms / 1e3 == exactly(24));
  CHECK(m.output_throughput * duration_ms / 1e3 == exactly(tokens));
  CHECK(m.total_throughput * duration_ms / 1e3 == exactly(tokens + 24 * prompt_tokens));
  CHECK(m.request_goodput * duration_ms / 1e3 == exactly(good));
  CHECK(m.completed == 24);
  CHECK(m.failed == 18);
  CHECK(m.error_kinds.at("reset") == 6);
  CHECK(m.error_kinds.at("server") == 6);
  CHECK(m.error_kinds.at("http_503") == 6);
  CHECK(m.output_tokens == std::int64_t(tokens));
  CHECK(m.input_tokens == 24 * prompt_tokens);
  CHECK(m.stopped_early == 12);
  CHECK(m.context_limited == 0);
  CHECK(m.finish_reasons.at("stop") == 12);
  CHECK(m.finish_reasons.at("length") == 12);
  CHECK(m.peak_in_flight == 1);
  CHECK(result.client.loop_lag_p99_ms == 0);
}

TEST_CASE("a closed loop of several workers keeps them all busy") {
  serve_options options = made_up_options("openai");
  options.max_concurrency = 4;
  const run_outcome result = run_on_made_up_time(options, prompts(12, 5), [](int) {
    script s;
    s.first_ms = 100;
    s.gap_ms = 50;
    s.n_chunks = 5;
    return s;
  });
  const serve_metrics m = compute_metrics(result, options);
  CHECK(result.duration_s == exactly(3 * 0.3));
  CHECK(m.peak_in_flight == 4);
  CHECK(m.request_throughput == exactly(12 / 0.9));
  CHECK(m.output_throughput == exactly(60 / 0.9));
  CHECK(m.ttft_ms.mean == exactly(100));
  CHECK(m.queue_ms.mean == 0); // a closed loop has no due times
}

TEST_CASE("an open loop sends when requests are due, however slow the server is") {
  serve_options options = made_up_options("openai");
  options.request_rate_per_s = 50;
  options.max_concurrency = 0;
  const run_outcome result = run_on_made_up_time(
      options, prompts(20, 1),
      [](int) {
        script s;
        s.first_ms = 205;
        s.n_chunks = 1;
        return s;
      },
      every(20, 0.02));
  const serve_metrics m = compute_metrics(result, options);
  for (std::size_t i = 0; i < 20; ++i)
    CHECK(result.records[i].start_s == exactly(0.02 * double(i)));
  CHECK(m.peak_in_flight == 11);
  CHECK(m.queue_ms.mean == 0);
  CHECK(m.e2el_ms.mean == exactly(205));
  CHECK(result.client.send_lag_p99_ms == 0);
  CHECK(result.duration_s == exactly(19 * 0.02 + 0.205));
}

TEST_CASE("in an open loop the wait at the client is in the figures from the due time") {
  // One server slot of 40 ms, a request due every 10 ms: request i waits 30 * i ms at the client.
  constexpr int n = 10;
  serve_options options = made_up_options("openai");
  options.request_rate_per_s = 100;
  const run_outcome result = run_on_made_up_time(
      options, prompts(n, 1),
      [](int) {
        script s;
        s.first_ms = 40;
        s.n_chunks = 1;
        return s;
      },
      every(n, 0.01));
  const serve_metrics m = compute_metrics(result, options);
  std::vector<double> waits, from_due;
  for (int i = 0; i < n; ++i) {
    waits.push_back(30.0 * i);
    from_due.push_back(30.0 * i + 40);
  }
  check(m.queue_ms, waits);
  check(m.ttft_with_queue_ms, from_due);
  check(m.e2el_with_queue_ms, from_due);
  CHECK(m.e2el_ms.mean == exactly(40));
}

TEST_CASE("Poisson arrivals are sent at exactly the times drawn ahead") {
  serve_options options = made_up_options("openai");
  options.request_rate_per_s = 25;
  options.max_concurrency = 0;
  random_source random(9);
  const auto due_s = arrival_times_s(200, 25, 1.0, random);
  const run_outcome result = run_on_made_up_time(
      options, prompts(200, 4), [](int) { return script{}; }, due_s);
  for (std::size_t i = 0; i < due_s.size(); ++i)
    CHECK(std::fabs(result.records[i].start_s - due_s[i]) < 1e-8); // nanoseconds
  CHECK(result.duration_s == exactly(due_s.back()));
}

TEST_CASE("drops and timeouts come at their time and count apart") {
  const std::string backend = GENERATE("openai", "twill-stream");
  serve_options options = made_up_options(backend);
  options.cancellation_percent = 100;
  options.cancellation_delay_s = 0.25;
  const auto slow = [](int) {
    script s;
    s.first_ms = 100;
    s.gap_ms = 100;
    s.n_chunks = 50;
    return s;
  };
  run_outcome result = run_on_made_up_time(options, prompts(4, 50), slow);
  serve_metrics m = compute_metrics(result, options);
  CHECK(m.cancelled == 4);
  CHECK(m.failed == 0);
  CHECK(result.duration_s == exactly(1));
  CHECK(result.records[0].output_tokens == 2);

  options.cancellation_percent = 0;
  options.request_timeout = std::chrono::milliseconds(1500);
  result = run_on_made_up_time(options, prompts(2, 50), slow);
  m = compute_metrics(result, options);
  CHECK(m.error_kinds.at("timeout") == 2);
  CHECK(result.duration_s == exactly(3));

  options.cancellation_percent = 100;
  options.cancellation_delay_s.reset(); // cancel after a random number of tokens
  result = run_on_made_up_time(options, prompts(20, 10), [](int) {
    script s;
    s.gap_ms = 10;
    s.n_chunks = 10;
    return s;
  });
  double tokens = 0, spent_s = 0;
  for (const record& one : result.records) {
    CHECK(one.how == outcome::cancelled);
    CHECK(one.output_tokens < 10);
    tokens += one.output_tokens;
    spent_s += 0.01 * std::max(0, one.output_tokens - 1);
  }
  CHECK(tokens > 0);
  CHECK(result.duration_s == exactly(spent_s));
}

TEST_CASE("over sockets no stamp is before the server's own and none after the run's end") {
  const std::string backend =
      GENERATE("openai", "openai-chat", "llama.cpp", "tgi", "twill-stream", "responses-ws");
  CAPTURE(backend);
  bench_server server([&](int i) {
    script s = kind_of(i, backend);
    if (s.status != 200 && (backend == "twill-stream" || backend == "responses-ws")) s.status = 200;
    return s;
  });
  serve_options options = options_for(server, backend);
  options.max_concurrency = 1;
  const auto before = clock::now();
  const run_outcome result = run(options, prompts(n_requests / 2, asked_tokens));
  const double all_ms = ms(clock::now() - before);
  const auto log = server.log();
  REQUIRE(log.size() == result.records.size());
  double busy_ms = 0;
  for (std::size_t i = 0; i < log.size(); ++i) {
    const record& one = result.records[i];
    const sent_times& sent = log[i];
    if (one.how != outcome::completed) continue;
    CAPTURE(i);
    const double slack_ms = 0.001; // for the rounding of itl_s to floats
    REQUIRE(one.itl_s.size() + 1 == sent.chunks.size());
    CHECK(one.ttft_s * 1e3 >= ms(sent.chunks.front() - sent.received));
    CHECK(one.latency_s * 1e3 >= ms(sent.chunks.back() - sent.received));
    double at_ms = one.ttft_s * 1e3;
    for (std::size_t c = 1; c < sent.chunks.size(); ++c) {
      at_ms += double(one.itl_s[c - 1]) * 1e3;
      CHECK(at_ms + slack_ms >= ms(sent.chunks[c] - sent.received));
    }
    CHECK(at_ms <= one.latency_s * 1e3 + slack_ms);
    CHECK(one.start_s + one.latency_s <= result.duration_s);
    // The next request arrived after this one's last time stamp, which bounds how late that can be.
    if (i + 1 < log.size())
      CHECK(one.latency_s * 1e3 <= ms(log[i + 1].received - sent.received) +
                                       ms(sent.received - before) - one.start_s * 1e3);
    busy_ms += one.latency_s * 1e3;
  }
  CHECK(busy_ms <= result.duration_s * 1e3);
  CHECK(result.duration_s * 1e3 <= all_ms);
}
