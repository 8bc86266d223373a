#include <string>

#include "tests/catch.hpp"
#include "tools/twill-bench/engine/endpoint.hpp"
#include "tools/twill-bench/engine/json_scan.hpp"
#include "tools/twill-bench/engine/report.hpp"
#include "tools/twill-bench/engine/sse_parser.hpp"
#include "tools/twill-bench/engine/watcher.hpp"
#include "tools/twill-bench/protocols/body.hpp"

using namespace twill::bench;
namespace js = twill::bench::json_scan;

TEST_CASE("a member is found past nested values and tricky strings") {
  const std::string text =
      R"( {"a":"}],\"b\":1","n" : {"b":[{"x":"]"}]},"list":[1,[2,3],{"k":"v"}],"b":-42,"z":null} )";
  CHECK(js::member(text, "b") == "-42");
  CHECK(js::integer(js::member(text, "b")) == -42);
  CHECK(js::member(js::member(text, "n"), "b") == R"([{"x":"]"}])");
  CHECK(js::length(js::member(text, "list")) == 3);
  CHECK(js::element(js::member(text, "list"), 1) == "[2,3]");
  CHECK(js::string_body(js::member(js::element(js::member(text, "list"), 2), "k")) == "v");
  CHECK(js::element(js::member(text, "list"), 3).empty());
  CHECK_FALSE(js::present(js::member(text, "z")));
  CHECK_FALSE(js::present(js::member(text, "nowhere")));
}

TEST_CASE("broken JSON yields nothing and never overruns") {
  const std::string whole = R"({"a":[1,{"b":"c\"d"}],"k":{"x":"yA"},"t":true})";
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const std::string cut = whole.substr(0, n); // every prefix, in its own allocation
    CHECK(js::member(cut, "none").empty());
    js::decode(js::member(js::member(cut, "k"), "x"));
    js::length(js::member(cut, "a"));
  }
  for (const char* bad :
       {"", "[", "{", "{\"a\"", "{\"a\":", "{a:1}", "{\"a\" 1}", "null", "{\"a\":,}"})
    CHECK(js::member(bad, "a").empty());
  CHECK_FALSE(js::integer("12x"));
  CHECK_FALSE(js::integer("1.5"));
}

TEST_CASE("members come one after the other, and none after the text breaks") {
  const auto walked = [](std::string_view text) {
    std::string out;
    for (js::members each(text); each.next();)
      out += std::string(each.key()) + "=" + std::string(each.value()) + ";";
    return out;
  };
  CHECK(walked(R"( { "a" : 1 , "b":[{"c":2},"}"], "a":"x\"y" } )") ==
        R"(a=1;b=[{"c":2},"}"];a="x\"y";)");
  CHECK(walked("{}").empty());
  CHECK(walked("[1]").empty());
  CHECK(walked(R"({"a":1,"b":[2)") == "a=1;");
  CHECK(walked(R"({"a":1 "b":2})") == "a=1;");
  CHECK(walked(R"({"a":1,b:2})") == "a=1;");
}

TEST_CASE("strings are decoded with escapes and surrogate pairs") {
  CHECK(js::decode(R"("a\n\t\"\\\/é")") == "a\n\t\"\\/\xC3\xA9");
  CHECK(js::decode(R"("\ud83d\ude00")") == "\xF0\x9F\x98\x80");
  CHECK(js::decode(R"("\ud83d!")") == "\xEF\xBF\xBD!");
  CHECK(js::decode(R"("\u00g0")") == "\xEF\xBF\xBD");
  CHECK(js::decode("17").empty());
}

TEST_CASE("events are the same however the bytes are cut") {
  const std::string bytes = ": ping\n\ndata: one\n\nevent: x\r\ndata:two\r\ndata:  three\r\n\r\n"
                            "id: 5\n\ndata\n\ndata: old\rdata: ends\r\rdata: [DONE]\n\n";
  const std::vector<std::string> expected{"one", "two\n three", "", "old\nends", "[DONE]"};
  for (std::size_t step = 1; step <= bytes.size(); ++step) {
    sse_parser parser;
    std::vector<std::string> seen;
    for (std::size_t at = 0; at < bytes.size(); at += step)
      CHECK(parser.feed(std::string_view(bytes).substr(at, step), [&](std::string_view data) {
        seen.emplace_back(data);
        return true;
      }));
    CHECK(seen == expected);
    CHECK(parser.at_boundary());
  }
}

TEST_CASE("base URLs are taken apart and bad ones refused") {
  const endpoint plain = parse_base_url("http://example.org:8000/api/");
  CHECK(plain.host == "example.org");
  CHECK(plain.port == "8000");
  CHECK(plain.prefix == "/api");
  CHECK(parse_base_url("localhost").authority() == "localhost:80");
  CHECK(parse_base_url("ws://[::1]:9").authority() == "[::1]:9");
  CHECK_FALSE(plain.tls);
  for (const char* url : {"https://example.org/v1/", "wss://example.org/v1"}) {
    const endpoint secure = parse_base_url(url);
    CHECK(secure.tls);
    CHECK(secure.authority() == "example.org:443");
    CHECK(secure.prefix == "/v1");
    CHECK(parse_base_url("https://[::1]:8443").authority() == "[::1]:8443");
  }
  for (const char* bad : {"ftp://x", "httpss://x", "https://", "http://", "http://x:port",
                          "http://[::1", "http://x:"})
    CHECK_THROWS_AS(parse_base_url(bad), std::invalid_argument);
}

TEST_CASE("request bodies are sound JSON") {
  serve_options options;
  options.ignore_eos = true;
  options.top_k = 5;
  options.extra_body = R"( {"cache_salt": "x"} )";
  const std::string body = body_writer()
                               .text("prompt", "a\"\\\n\x01")
                               .ids("ids", {1, 22, 333})
                               .sampling(options)
                               .finish();
  CHECK(js::decode(js::member(body, "prompt")) == "a\"\\\n\x01");
  CHECK(js::member(body, "ids") == "[1,22,333]");
  CHECK(js::member(body, "temperature") == "0");
  CHECK(js::member(body, "top_k") == "5");
  CHECK(js::member(body, "ignore_eos") == "true");
  CHECK(js::member(body, "cache_salt") == "\"x\"");
  CHECK(body_writer().merge("{}").finish() == "{}");
}

TEST_CASE("the table is vLLM's, column by column") {
  serve_options options;
  options.percentile_metrics = {"ttft", "tpot", "itl", "e2el"};
  options.metric_percentiles = {99, 99.9};
  options.max_concurrency = 4;
  run_outcome run;
  run.duration_s = 2;
  const serve_metrics metrics = compute_metrics(run, options);
  const std::string table = report_table({options, run, metrics, "20260101-000000"});
  for (const char* line : {"============ Serving Benchmark Result ============\n",
                           "Successful requests:                     0         \n",
                           "Maximum request concurrency:             4         \n",
                           "Benchmark duration (s):                  2.00      \n",
                           "Peak output token throughput (tok/s):    0.00      \n",
                           "Total token throughput (tok/s):          0.00      \n",
                           "---------------Time to First Token----------------\n",
                           "-----Time per Output Token (excl. 1st token)------\n",
                           "---------------Inter-token Latency----------------\n",
                           "----------------End-to-end Latency----------------\n",
                           "Median TTFT (ms):                        0.00      \n",
                           "P99.9 ITL (ms):                          0.00      \n",
                           "==================================================\n"})
    CHECK(table.find(line) != std::string::npos);
}

TEST_CASE("the result file has vLLM's keys") {
  serve_options options;
  options.metadata = {{"gpu", "none"}};
  run_outcome run;
  run.duration_s = 1;
  const serve_metrics metrics = compute_metrics(run, options);
  const std::string json = report_json({options, run, metrics, "20260101-000000"});
  for (const char* key : {"date",
                          "backend",
                          "model_id",
                          "num_prompts",
                          "request_rate",
                          "burstiness",
                          "duration",
                          "completed",
                          "failed",
                          "total_input_tokens",
                          "total_output_tokens",
                          "request_throughput",
                          "output_throughput",
                          "total_token_throughput",
                          "max_output_tokens_per_s",
                          "max_concurrent_requests",
                          "mean_ttft_ms",
                          "median_tpot_ms",
                          "std_itl_ms",
                          "p99_e2el_ms",
                          "gpu",
                          "twill_bench"})
    CHECK_FALSE(js::member(json, key).empty());
  CHECK(js::member(json, "request_rate") == "\"inf\"");
  CHECK(js::member(json, "max_concurrency") == "null");
  CHECK(js::member(json, "ttfts").empty());
}

TEST_CASE("the progress line shows share, rates and the time left") {
  CHECK(progress_line(5, 20, 100, 10) ==
        "      5/20 [======>                 ]     0.5 req/s       10 tok/s  ETA 30 s");
  CHECK(progress_line(0, 0, 0, 0).find("0/0") != std::string::npos);
}
