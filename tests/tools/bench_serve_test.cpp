// twill-bench against a scripted server: what it measures is what was scripted. Counts are exact;
// times may be up to `slack_ms` late, as the machine may be busy, and never early.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "tests/catch.hpp"
#include "tests/tools/bench_drive.hpp"
#include "tests/tools/bench_server.hpp"
#include "tools/twill-bench/engine/arrivals.hpp"
#include "tools/twill-bench/engine/control_client.hpp"
#include "tools/twill-bench/engine/json_scan.hpp"
#include "tools/twill-bench/engine/metrics.hpp"
#include "tools/twill-bench/engine/workload.hpp"

using namespace twill::bench;
using twill::tests::attempt;
using twill::tests::bench_server;
using twill::tests::options_for;
using twill::tests::prompts;
using twill::tests::run;
using twill::tests::script;
using twill::tests::try_until;

namespace {

constexpr double slack_ms = 15;

/// True when the medians are as scripted. What could only be wrong by a wrong clock is checked at
/// once.
bool as_scripted(const serve_metrics& m, double ttft_ms, double gap_ms, int n_gaps) {
  const double e2el_ms = ttft_ms + gap_ms * n_gaps;
  CHECK(m.ttft_ms.median >= ttft_ms - 0.1);
  CHECK(m.e2el_ms.median >= e2el_ms - 0.1);
  return m.ttft_ms.median <= ttft_ms + slack_ms && m.e2el_ms.median <= e2el_ms + 2 * slack_ms &&
         m.itl_ms.median == Approx(gap_ms).margin(slack_ms) &&
         m.tpot_ms.median == Approx(gap_ms).margin(slack_ms);
}

} // namespace

TEST_CASE("every backend measures the scripted delays and counts") {
  const std::string backend =
      GENERATE("openai", "openai-chat", "llama.cpp", "twill-stream", "responses-ws");
  CAPTURE(backend);
  script s;
  s.first_ms = 60;
  s.gap_ms = 25;
  s.n_chunks = 5;
  s.empty_opening = backend == "openai-chat";
  bench_server server([&](int) { return s; });
  const serve_options options = options_for(server, backend);
  try_until([&] {
    const int connections_before = server.counts().connections;
    const run_outcome got = run(options, prompts(12, 5));
    const serve_metrics m = compute_metrics(got, options);
    CHECK(m.completed == 12);
    CHECK(m.input_tokens == 12 * 7);
    CHECK(m.output_tokens == 12 * 5);
    CHECK(m.finish_reasons.at("length") == 12);
    CHECK(m.counted_lengths == 0);
    CHECK(m.short_outputs == 0);
    CHECK(m.peak_in_flight <= 4);
    CHECK(server.counts().most_open <= 4);
    CHECK(server.counts().connections == connections_before + 4); // reused
    for (const record& one : got.records)
      CHECK(one.text == "ababababab");
    return attempt{as_scripted(m, 60, 25, 4), got.client.loop_lag_p99_ms};
  });
}

TEST_CASE("all requests share the sockets of --connections") {
  const std::string backend = GENERATE("twill-stream", "responses-ws");
  CAPTURE(backend);
  bench_server server([](int) {
    script s;
    s.first_ms = s.gap_ms = 20;
    s.tokens_per_chunk = 3;
    return s;
  });
  serve_options options = options_for(server, backend);
  options.connections = 2;
  options.max_concurrency = 16;
  const run_outcome got = run(options, prompts(64, 12));
  const serve_metrics m = compute_metrics(got, options);
  CHECK(m.completed == 64);
  CHECK(m.output_tokens == 64 * 12);
  CHECK(server.counts().connections == 2);
  CHECK(server.counts().most_open == 16);
}

TEST_CASE("whole replies give end-to-end latency and lengths") {
  const std::string backend = GENERATE("openai", "openai-chat", "llama.cpp");
  CAPTURE(backend);
  bench_server server([](int) {
    script s;
    s.first_ms = 40;
    s.gap_ms = 10;
    s.finish = "stop";
    return s;
  });
  serve_options options = options_for(server, backend);
  options.stream = false;
  const run_outcome got = run(options, prompts(4, 9));
  const serve_metrics m = compute_metrics(got, options);
  CHECK(m.completed == 4);
  CHECK(m.output_tokens == 16);
  CHECK(m.stopped_early == 4);
  CHECK(m.e2el_ms.median >= 69.9);
  CHECK(m.itl_ms.mean == 0);
  CHECK(got.records[0].text == "abababab");
  serve_options wrong = options;
  wrong.backend = "twill-stream";
  CHECK_THROWS_AS(make_protocol(wrong), std::invalid_argument);
}

TEST_CASE("failures are counted by kind and leave the others alone") {
  const std::string backend = GENERATE("openai", "twill-stream");
  CAPTURE(backend);
  const bool http = backend == "openai";
  bench_server server([=](int i) {
    script s;
    if (i % 4 == 1) s.cut_after = 2;
    if (i % 4 == 2) s.error_after = 1;
    if (i % 4 == 3 && http) s.status = 429;
    return s;
  });
  serve_options options = options_for(server, backend);
  options.max_concurrency = 1;
  const run_outcome got = run(options, prompts(8, 4));
  const serve_metrics m = compute_metrics(got, options);
  CHECK(m.completed == (http ? 2u : 4u));
  CHECK(m.error_kinds.at("reset") == 2);
  CHECK(m.error_kinds.at("server") == 2);
  CHECK(got.records[2].error == "scripted error");
  if (http) {
    CHECK(m.error_kinds.at("http_429") == 2);
    CHECK(got.records[3].error == "scripted refusal");
    CHECK(got.records[3].http_status == 429);
  }
  CHECK(m.output_tokens == std::int64_t(m.completed) * 4);
}

TEST_CASE("a stream without its end mark is truncated, one without usage is counted here") {
  bench_server server([](int i) {
    script s;
    s.end_mark = i > 0;
    s.usage = false;
    return s;
  });
  serve_options options = options_for(server, "openai");
  options.max_concurrency = 1;
  const run_outcome got = run(options, prompts(2, 4));
  CHECK(got.records[0].error_kind == "truncated");
  REQUIRE(got.records[1].how == outcome::completed);
  CHECK(got.records[1].output_tokens == 4);
  CHECK(compute_metrics(got, options).counted_lengths == 1);
}

TEST_CASE("a refused connection and a silent server have their own kinds") {
  serve_options options;
  {
    bench_server gone([](int) { return script{}; });
    options = options_for(gone, "openai");
  }
  CHECK(run(options, prompts(1, 4)).records[0].error_kind == "connect");
  const std::string backend = GENERATE("openai", "twill-stream");
  bench_server slow([](int) {
    script s;
    s.first_ms = 5000;
    return s;
  });
  options = options_for(slow, backend);
  options.request_timeout = std::chrono::milliseconds(100);
  const run_outcome got = run(options, prompts(2, 4));
  CHECK(got.records[0].error_kind == "timeout");
  CHECK(got.duration_s < 3);
}

TEST_CASE("an open loop sends on time although the server is slow") {
  bench_server server([](int) {
    script s;
    s.first_ms = 200;
    s.n_chunks = 1;
    return s;
  });
  serve_options options = options_for(server, "openai");
  options.request_rate_per_s = 50;
  options.max_concurrency = 0;
  std::vector<double> due_s;
  for (int i = 0; i < 20; ++i)
    due_s.push_back(0.02 * i);
  try_until([&] {
    const run_outcome got = run(options, prompts(20, 1), due_s);
    const serve_metrics m = compute_metrics(got, options);
    CHECK(m.completed == 20);
    CHECK(m.peak_in_flight >= 5); // a closed loop of one or two could not
    const bool timely = m.queue_ms.median <= slack_ms && m.e2el_ms.median <= 200 + 2 * slack_ms;
    return attempt{timely, got.client.loop_lag_p99_ms};
  });

  options.max_concurrency = 1; // now requests queue at the client: one per 200 ms
  due_s.resize(5);
  const serve_metrics queued = compute_metrics(run(options, prompts(5, 1), due_s), options);
  CHECK(queued.queue_ms.median >= 2 * 180 - 1);
  CHECK(queued.e2el_with_queue_ms.mean == Approx(queued.queue_ms.mean + queued.e2el_ms.mean));
}

TEST_CASE("cancelled requests are dropped, counted apart, and seen by the server") {
  const std::string backend = GENERATE("openai", "twill-stream");
  const std::size_t connections = GENERATE(0, 1);
  if (backend == "openai" && connections > 0) return;
  CAPTURE(backend, connections);
  bench_server server([](int) {
    script s;
    s.first_ms = s.gap_ms = 5;
    s.n_chunks = 40;
    return s;
  });
  serve_options options = options_for(server, backend);
  options.connections = connections;
  options.cancellation_percent = 50;
  options.seed = 5;
  const run_outcome got = run(options, prompts(40, 40));
  const serve_metrics m = compute_metrics(got, options);
  CHECK(m.completed + m.cancelled == 40);
  CHECK(m.cancelled >= 10);
  CHECK(m.cancelled <= 30);
  CHECK(m.failed == 0);
  CHECK(m.output_tokens == std::int64_t(m.completed) * 40);
  if (connections > 0) {
    // the last ones may still be on their way, or go with the socket
    CHECK(std::size_t(server.counts().cancels) <= m.cancelled);
    CHECK(std::size_t(server.counts().cancels) + 4 >= m.cancelled);
    CHECK(server.counts().connections == 1);
  }
  options.cancellation_percent = 100;
  options.cancellation_delay_s = 0.05;
  const serve_metrics timed = compute_metrics(run(options, prompts(4, 40)), options);
  CHECK(timed.cancelled == 4);
}

TEST_CASE("stopping keeps what there is and marks it") {
  const std::string backend = GENERATE("openai", "twill-stream");
  bench_server server([](int i) {
    script s;
    s.first_ms = i < 2 ? 1 : 60000;
    return s;
  });
  const serve_options options = options_for(server, backend);
  const auto dialect = make_protocol(options);
  engine driver(options, *dialect);
  progress_counts counts;
  std::thread stopper([&] {
    for (int turn = 0; turn < 1000 && (counts.ended < 2 || counts.sent < 6); ++turn)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    driver.stop();
  });
  std::vector<double> due_s(8, 0.0);
  due_s.back() = 30;
  const run_outcome got = driver.run(prompts(8, 4), due_s, 4, counts);
  stopper.join();
  const serve_metrics m = compute_metrics(got, options);
  CHECK(got.interrupted);
  CHECK(got.duration_s < 5);
  CHECK(m.completed == 2);
  CHECK(m.interrupted == 4);
  CHECK(m.unsent == 2);
}

TEST_CASE("several I/O threads share one workload and one limit") {
  bench_server server([](int) {
    script s;
    s.gap_ms = 5;
    return s;
  });
  serve_options options = options_for(server, "openai");
  options.io_threads = 3;
  options.max_concurrency = 8;
  const run_outcome got = run(options, prompts(100, 4));
  CHECK(compute_metrics(got, options).completed == 100);
  CHECK(server.counts().requests == 100);
  CHECK(server.counts().most_open <= 8);
  CHECK(server.counts().connections == 8);
}

TEST_CASE("without keep-alive every request has its own connection") {
  const std::string backend = GENERATE("openai", "twill-stream");
  bench_server server([](int) { return script{}; });
  serve_options options = options_for(server, backend);
  options.keep_alive = false;
  CHECK(compute_metrics(run(options, prompts(10, 4)), options).completed == 10);
  CHECK(server.counts().connections == 10);
}

TEST_CASE("random prompts repeat with the seed, differ by request, and avoid special ids") {
  bench_server server([](int) { return script{}; });
  serve_options options = options_for(server, "openai");
  options.input_tokens = 50;
  options.output_tokens = 20;
  options.range_ratio = 0.5;
  control_client client(options.base_url, {});
  const auto facts = read_models(client.get("/v1/models").body, "");
  REQUIRE(facts);
  CHECK(facts->id == "scripted");
  CHECK(facts->max_model_len == 4096);
  http_token_service tokens(client, facts->id);
  const workload_source ids{options, true, *facts, tokens, [] { return false; }};
  const workload one = make_workload(ids, 30, 1);
  const workload same = make_workload(ids, 30, 1);
  const workload other = make_workload(ids, 30, 2);
  REQUIRE(one.prompts.size() == 30);
  for (std::size_t i = 0; i < 30; ++i) {
    const prompt& p = one.prompts[i];
    CHECK(p.ids == same.prompts[i].ids);
    CHECK(p.ids != other.prompts[i].ids);
    CHECK(p.ids.size() == std::size_t(p.input_tokens));
    CHECK((p.input_tokens >= 25 && p.input_tokens <= 75));
    CHECK((p.output_tokens >= 10 && p.output_tokens <= 30));
    CHECK(*std::min_element(p.ids.begin(), p.ids.end()) >= 1000);
  }

  options.range_ratio = 0;
  const workload_source texts{options, false, *facts, tokens, [] { return false; }};
  const workload aligned = make_workload(texts, 5, 1);
  for (const prompt& p : aligned.prompts) {
    CHECK(p.ids.empty());
    CHECK(p.input_tokens == 50);
    CHECK(p.text.size() == 50); // the scripted tokenizer: a token is a character
  }
  CHECK(aligned.remarks.empty());
}

TEST_CASE("a server without a tokenizer gets plain words and the report says so") {
  bench_server server([](int) { return script{}; }, false);
  serve_options options = options_for(server, "openai-chat");
  options.input_tokens = 12;
  control_client client(options.base_url, {});
  http_token_service tokens(client, "scripted");
  const workload_source source{options, false, {"scripted", {}, {}}, tokens, [] { return false; }};
  const workload words = make_workload(source, 3, 1);
  CHECK(words.prompts.size() == 3);
  CHECK_FALSE(words.prompts[0].text.empty());
  REQUIRE(words.remarks.size() == 1);
}
