// Traces without a socket: which trace a request joins, what spans contain, and what a collector
// that is slow or gone costs. tests/clients/test_tracing.py reads the bytes with OpenTelemetry's
// own decoder.
#include "net/tracing/tracer.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "actors/port/request_summary.hpp"
#include "net/tracing/request_spans.hpp"
#include "net/tracing/trace_parent.hpp"
#include "tests/catch.hpp"

using namespace twill;
using namespace twill::net;
using namespace std::chrono_literals;

namespace {

const std::string parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

actors::request_summary ended(const char* status = "stop", bool failed = false) {
  actors::request_summary about;
  about.model = "m";
  about.use = {7, 4, 3};
  about.status = status;
  about.failed = failed;
  about.total = 10ms;
  if (failed) return about;
  about.queued = 1ms;
  about.first_token = 4ms;
  about.last_token = 9ms;
  return about;
}

std::vector<span> spans_of(const traced_request& from) {
  std::vector<span> all;
  std::uint8_t n = 0;
  append_spans(
      from, [&n] { return span_id{++n}; }, all);
  return all;
}

std::string text_at(const span& from, const char* name) {
  for (const auto& [key, value] : from.about)
    if (key == name) return std::get<std::string>(value);
  return "(absent)";
}

/// A collector that answers with a settable status, and on which the test can wait.
struct collector {
  tracer::post post() {
    return [this](const std::string& body, std::chrono::milliseconds) {
      std::unique_lock lock(mutex);
      bodies.push_back(body);
      changed.notify_all();
      changed.wait(lock, [this] { return !hangs; });
      return status;
    };
  }
  bool wait_for(std::size_t n) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, 10s, [&] { return bodies.size() >= n; });
  }
  void answer(int with) {
    const std::lock_guard lock(mutex);
    status = with;
    hangs = false;
    changed.notify_all();
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> bodies;
  int status = 200;
  bool hangs = false;
};

constexpr tracer::pace quick{1ms, 1ms, 3, 8, 4};

config::tracing_options sampling(double share) {
  config::tracing_options options;
  options.endpoint = "http://127.0.0.1:1";
  options.sample = share;
  return options;
}

/// Begins and ends one request after another.
void end_requests(tracer& traces, int n, const std::string& traceparent = {}) {
  for (int i = 0; i < n; ++i) {
    actors::request asked;
    traces.watch(asked, traceparent);
    if (asked.on_end) asked.on_end(ended());
  }
}

} // namespace

TEST_CASE("a traceparent is read as the standard wants, and anything else is ignored") {
  const auto read = read_trace_parent(parent);
  REQUIRE(read.has_value());
  CHECK(read->trace[0] == 0x0a);
  CHECK(read->trace[15] == 0x9c);
  CHECK(read->span[7] == 0x31);
  CHECK(read->sampled);
  CHECK_FALSE(read_trace_parent(parent.substr(0, 53) + "00")->sampled);
  CHECK(read_trace_parent("01" + parent.substr(2) + "-later").has_value());
  for (const std::string& wrong : std::initializer_list<std::string>{
           std::string(), parent.substr(1), parent + "-more", "ff" + parent.substr(2),
           "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
           "00-00000000000000000000000000000000-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", std::string(55, '-'),
           std::string(5000, 'a')})
    CHECK_FALSE(read_trace_parent(wrong).has_value());
}

TEST_CASE("the spans of a request add up to its time") {
  traced_request one;
  one.trace[0] = 1;
  one.id = {9};
  one.parent = {5};
  one.chat = true;
  one.about = ended();
  one.end_unix_ns = 1'000'000'000;
  const auto all = spans_of(one);
  REQUIRE(all.size() == 4);
  CHECK(all[0].name == "chat m");
  CHECK(all[0].parent == span_id{5});
  CHECK(all[0].start_unix_ns == 990'000'000);
  CHECK(all[0].end_unix_ns == 1'000'000'000);
  CHECK(text_at(all[0], "gen_ai.operation.name") == "chat");
  CHECK(text_at(all[0], "error.type") == "(absent)");
  std::uint64_t at = all[0].start_unix_ns;
  const char* names[] = {"queue", "prefill", "decode"};
  for (std::size_t i = 1; i < all.size(); ++i) {
    CHECK(all[i].name == names[i - 1]);
    CHECK(all[i].trace == one.trace);
    CHECK(all[i].parent == one.id);
    CHECK(all[i].start_unix_ns == at);
    at = all[i].end_unix_ns;
  }
  CHECK(at == 999'000'000);
}

TEST_CASE("a request that failed in the queue has an error and no further spans") {
  traced_request one;
  one.about = ended("queue_full", true);
  one.end_unix_ns = 5; // a clock that was set back must not wrap around
  const auto all = spans_of(one);
  REQUIRE(all.size() == 2);
  CHECK(all[0].failed);
  CHECK(text_at(all[0], "error.type") == "queue_full");
  CHECK(all[0].start_unix_ns <= all[0].end_unix_ns);
  CHECK(all[1].name == "queue");
}

TEST_CASE("the caller's flag decides what is traced, and else the share that is sampled") {
  collector to;
  tracer all(sampling(1), to.post(), quick), none(sampling(0), to.post(), quick);
  actors::request asked;
  none.watch(asked, {});
  CHECK_FALSE(asked.on_end);
  none.watch(asked, parent);
  CHECK(asked.on_end);
  asked.on_end = nullptr;
  all.watch(asked, parent.substr(0, 53) + "00");
  CHECK_FALSE(asked.on_end);
  all.watch(asked, "nonsense");
  CHECK(asked.on_end);
}

TEST_CASE("a collector that is overloaded is tried again after longer and longer times") {
  collector to;
  to.status = 503;
  const auto began = std::chrono::steady_clock::now();
  tracer traces(sampling(1), to.post(), {1ms, 20ms, 5, 8, 4});
  end_requests(traces, 1);
  REQUIRE(to.wait_for(5));
  CHECK(std::chrono::steady_clock::now() - began >= 20ms + 40ms + 80ms + 160ms);
}

TEST_CASE("a collector that is slow, gone or back costs spans and never a request") {
  collector to;
  to.hangs = true;
  {
    tracer traces(sampling(1), to.post(), quick);
    end_requests(traces, 1);
    REQUIRE(to.wait_for(1));
    // The collector hangs: eight requests are queued, and the next ones find the queue full.
    end_requests(traces, 8 + 5);
    CHECK(traces.read().dropped == 5 * 4);
    CHECK(traces.read().sent == 0);
    // Status 400 is final, 503 is worth three tries.
    to.answer(400);
    REQUIRE(to.wait_for(2));
    to.answer(503);
    for (int i = 0; i < 1000 && traces.read().dropped < 5 * 4 + 9 * 4; ++i)
      std::this_thread::sleep_for(1ms);
    CHECK(traces.read().dropped == 5 * 4 + 9 * 4);
    to.answer(200);
    end_requests(traces, 2);
    for (int i = 0; i < 1000 && traces.read().sent < 8; ++i)
      std::this_thread::sleep_for(1ms);
    CHECK(traces.read().sent == 8);
    CHECK(traces.read().dropped == 5 * 4 + 9 * 4);
  }
  const auto n = to.bodies.size();
  {
    tracer traces(sampling(1), to.post(), {1h, 1h, 3, 8, 4});
    end_requests(traces, 6);
  }
  CHECK(to.bodies.size() == n + 2); // queued spans are sent at the end, in batches
}
