// twill-bench against a scripted server over sockets: counts, contents, connections, ends. Times
// are checked in bench_accounting_test.cpp; here they have lower bounds only, as the machine may be
// busy.
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <algorithm>
#include <chrono>
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
using twill::tests::bench_server;
using twill::tests::options_for;
using twill::tests::prompts;
using twill::tests::run;
using twill::tests::script;

namespace {

/// Waits up to 20 s until `holds` returns true; returns its last result.
bool soon(const std::function<bool()>& holds) {
  for (int turn = 0; turn < 2000 && !holds(); ++turn)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return holds();
}

} // namespace

TEST_CASE("every backend reads the scripted texts and counts over reused connections") {
  const std::string backend =
      GENERATE("openai", "openai-chat", "llama.cpp", "tgi", "twill-stream", "responses-ws");
  CAPTURE(backend);
  script s;
  s.first_ms = 20;
  s.gap_ms = 5;
  s.n_chunks = 5;
  s.empty_opening = backend == "openai-chat";
  bench_server server([&](int) { return s; });
  const serve_options options = options_for(server, backend);
  const run_outcome result = run(options, prompts(12, 5));
  const serve_metrics m = compute_metrics(result, options);
  CHECK(m.completed == 12);
  CHECK(m.input_tokens == 12 * 7);
  CHECK(m.output_tokens == 12 * 5);
  CHECK(m.finish_reasons.at("length") == 12);
  CHECK(m.counted_lengths == 0);
  CHECK(m.short_outputs == 0);
  CHECK(m.peak_in_flight <= 4);
  CHECK(m.ttft_ms.median >= 19.9);
  CHECK(m.e2el_ms.median >= 39.9);
  CHECK(server.counts().most_open <= 4);
  CHECK(server.counts().connections == 4);
  for (const record& one : result.records)
    CHECK(one.text == "ababababab");
}

TEST_CASE("all requests share the sockets of --connections") {
  const std::string backend = GENERATE("twill-stream", "responses-ws");
  CAPTURE(backend);
  bench_server server([](int) {
    script s;
    s.after_requests = 16;
    s.tokens_per_chunk = 3;
    return s;
  });
  serve_options options = options_for(server, backend);
  options.connections = 2;
  options.max_concurrency = 16;
  const run_outcome result = run(options, prompts(64, 12));
  const serve_metrics m = compute_metrics(result, options);
  CHECK(m.completed == 64);
  CHECK(m.output_tokens == 64 * 12);
  CHECK(server.counts().connections == 2);
  CHECK(server.counts().most_open == 16);
}

TEST_CASE("whole replies give end-to-end latency and lengths") {
  const std::string backend = GENERATE("openai", "openai-chat", "llama.cpp", "tgi");
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
  const run_outcome result = run(options, prompts(4, 9));
  const serve_metrics m = compute_metrics(result, options);
  CHECK(m.completed == 4);
  CHECK(m.output_tokens == 16);
  CHECK(m.stopped_early == 4);
  CHECK(m.e2el_ms.median >= 69.9);
  CHECK(m.itl_ms.mean == 0);
  CHECK(result.records[0].text == "abababab");
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
  const run_outcome result = run(options, prompts(8, 4));
  const serve_metrics m = compute_metrics(result, options);
  CHECK(m.completed == (http ? 2u : 4u));
  CHECK(m.error_kinds.at("reset") == 2);
  CHECK(m.error_kinds.at("server") == 2);
  CHECK(result.records[2].error == "scripted error");
  if (http) {
    CHECK(m.error_kinds.at("http_429") == 2);
    CHECK(result.records[3].error == "scripted refusal");
    CHECK(result.records[3].http_status == 429);
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
  const run_outcome result = run(options, prompts(2, 4));
  CHECK(result.records[0].error_kind == "truncated");
  REQUIRE(result.records[1].how == outcome::completed);
  CHECK(result.records[1].output_tokens == 4);
  CHECK(compute_metrics(result, options).counted_lengths == 1);
}

TEST_CASE("a refused connection and a silent server have their own kinds") {
  boost::asio::io_context context;
  namespace ip = boost::asio::ip;
  // The port is bound but not listening, so connections are refused and no process can take it.
  ip::tcp::acceptor deaf(context);
  deaf.open(ip::tcp::v4());
  deaf.bind({ip::make_address("127.0.0.1"), 0});
  serve_options options;
  options.model = "scripted";
  options.max_concurrency = 1;
  options.base_url = "http://127.0.0.1:" + std::to_string(deaf.local_endpoint().port());
  CHECK(run(options, prompts(1, 4)).records[0].error_kind == "connect");
  const std::string backend = GENERATE("openai", "twill-stream");
  bench_server slow([](int) {
    script s;
    s.first_ms = 600'000;
    return s;
  });
  options = options_for(slow, backend);
  options.request_timeout = std::chrono::milliseconds(100);
  CHECK(run(options, prompts(2, 4)).records[0].error_kind == "timeout");
}

TEST_CASE("cancelled requests are dropped, counted apart, and seen by the server") {
  const std::string backend = GENERATE("openai", "twill-stream");
  const std::size_t connections = GENERATE(0, 1);
  if (backend == "openai" && connections > 0) return;
  CAPTURE(backend, connections);
  bench_server server([](int) {
    script s;
    s.first_ms = s.gap_ms = 2;
    s.n_chunks = 40;
    return s;
  });
  serve_options options = options_for(server, backend);
  options.connections = connections;
  options.cancellation_percent = 50;
  options.seed = 5;
  const auto dialect = make_protocol(options);
  engine driver(options, *dialect);
  progress_counts counts;
  const run_outcome result =
      driver.run(prompts(40, 40), std::vector<double>(40, 0.0), options.max_concurrency, counts);
  const serve_metrics m = compute_metrics(result, options);
  CHECK(m.completed + m.cancelled == 40);
  CHECK(m.cancelled >= 10);
  CHECK(m.cancelled <= 30);
  CHECK(m.output_tokens == std::int64_t(m.completed) * 40);
  if (connections > 0) { // the last messages may still be on their way
    CHECK(soon([&] { return std::size_t(server.counts().cancels) == m.cancelled; }));
    CHECK(server.counts().connections == 1);
  } else {
    CHECK(soon([&] { return server.counts().dropped > 0; }));
  }
}

TEST_CASE("stopping keeps what there is and marks it") {
  const std::string backend = GENERATE("openai", "twill-stream");
  bench_server server([](int i) {
    script s;
    s.first_ms = i < 2 ? 1 : 600'000;
    return s;
  });
  const serve_options options = options_for(server, backend);
  const auto dialect = make_protocol(options);
  engine driver(options, *dialect);
  progress_counts counts;
  std::thread stopper([&] {
    soon([&] { return counts.ended >= 2 && counts.sent >= 6; });
    driver.stop();
  });
  std::vector<double> due_s(8, 0.0);
  due_s.back() = 3600;
  const run_outcome result = driver.run(prompts(8, 4), due_s, 4, counts);
  stopper.join();
  const serve_metrics m = compute_metrics(result, options);
  CHECK(result.interrupted);
  CHECK(m.completed == 2);
  CHECK(m.interrupted == 4);
  CHECK(m.unsent == 2);
}

TEST_CASE("several I/O threads share one workload and one limit") {
  bench_server server([](int) {
    script s;
    s.after_requests = 8;
    return s;
  });
  serve_options options = options_for(server, "openai");
  options.io_threads = 3;
  options.max_concurrency = 8;
  const run_outcome result = run(options, prompts(100, 4));
  CHECK(compute_metrics(result, options).completed == 100);
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
