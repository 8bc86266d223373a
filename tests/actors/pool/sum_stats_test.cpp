// Sums of counters over engines: every figure of an engine is included in the pool's.
#include "actors/pool/sum_stats.hpp"

#include <memory>

#include "tests/catch.hpp"

using namespace twill::actors;

namespace {

using stats = engine_stats;

constexpr std::uint64_t stats::*counters[] = {
    &stats::prompt_tokens,         &stats::generation_tokens,  &stats::prefix_cache_queries,
    &stats::prefix_cache_hits,     &stats::kv_host_hits,       &stats::kv_disk_hits,
    &stats::kv_spilled_bytes,      &stats::kv_host_read_bytes, &stats::kv_disk_read_bytes,
    &stats::kv_disk_written_bytes, &stats::kv_tier_failures,   &stats::kv_tier_dropped,
    &stats::kv_fetches_refused,    &stats::preemptions,        &stats::steps,
    &stats::finished_stop,         &stats::finished_length,    &stats::finished_abort,
    &stats::finished_error,        &stats::executor_restarts};
constexpr std::int64_t stats::*gauges[] = {&stats::kv_blocks_total,
                                           &stats::kv_blocks_used,
                                           &stats::kv_host_blocks,
                                           &stats::kv_disk_blocks,
                                           &stats::device_memory_reserved_bytes,
                                           &stats::device_memory_touched_bytes,
                                           &stats::device_weights_bytes,
                                           &stats::device_outside_bytes};
constexpr histogram stats::*histograms[] = {&stats::time_to_first_token_seconds,
                                            &stats::inter_token_latency_seconds,
                                            &stats::e2e_request_latency_seconds,
                                            &stats::request_queue_time_seconds,
                                            &stats::request_prefill_time_seconds,
                                            &stats::request_decode_time_seconds,
                                            &stats::request_inference_time_seconds,
                                            &stats::request_time_per_output_token_seconds,
                                            &stats::request_prompt_tokens,
                                            &stats::request_generation_tokens,
                                            &stats::request_max_num_generation_tokens,
                                            &stats::request_params_n,
                                            &stats::request_params_max_tokens,
                                            &stats::iteration_tokens,
                                            &stats::decode_step_seconds,
                                            &stats::prefill_step_seconds,
                                            &stats::mixed_step_seconds};

histogram counted(std::uint64_t low, std::uint64_t high, double sum) {
  return {{1.0}, {low, high}, sum};
}

/// Every figure has a value of its own, which grows with `step`.
stats numbered(std::uint64_t step) {
  stats all;
  std::uint64_t n = step;
  for (const auto counter : counters)
    all.*counter = n += step;
  for (const auto gauge : gauges)
    all.*gauge = static_cast<std::int64_t>(n += step);
  all.requests_running = static_cast<std::int32_t>(n += step);
  all.requests_waiting = static_cast<std::int32_t>(n += step);
  for (const auto h : histograms) {
    n += step;
    all.*h = counted(n, 2 * n, static_cast<double>(n));
  }
  return all;
}

void check_equal(const histogram& a, const histogram& b) {
  CHECK(a.bounds == b.bounds);
  CHECK(a.counts == b.counts);
  CHECK(a.sum == b.sum);
}

void check_equal(const stats& a, const stats& b) {
  for (const auto counter : counters)
    CHECK(a.*counter == b.*counter);
  for (const auto gauge : gauges)
    CHECK(a.*gauge == b.*gauge);
  CHECK(a.requests_running == b.requests_running);
  CHECK(a.requests_waiting == b.requests_waiting);
  for (const auto h : histograms)
    check_equal(a.*h, b.*h);
}

} // namespace

TEST_CASE("every counter, gauge and histogram of two engines is summed") {
  stats sum = numbered(1);
  auto second = numbered(1000);
  second.kv_tiers = true;
  second.kv_block_tokens = 32;
  second.kv_block_bytes = 64;
  second.streamed = std::make_shared<stream_report>();
  add_stats(sum, second);
  check_equal(sum, numbered(1001));
  CHECK(sum.kv_tiers);
  CHECK(sum.kv_block_tokens == 32); // was not set before
  CHECK(sum.kv_block_bytes == 64);
  CHECK(sum.streamed == second.streamed);
  second.kv_tiers = false;
  second.kv_block_tokens = 16;
  add_stats(sum, second);
  CHECK(sum.kv_tiers);
  CHECK(sum.kv_block_tokens == 32);
  stats none;
  add_stats(none, numbered(7));
  check_equal(none, numbered(7));
}

TEST_CASE("an engine that is gone leaves its counters, not its gauges") {
  stats gone = numbered(3);
  gone.streamed = std::make_shared<stream_report>();
  forget_gauges(gone);
  stats wanted = numbered(3);
  for (const auto gauge : gauges)
    wanted.*gauge = 0;
  wanted.requests_running = wanted.requests_waiting = 0;
  check_equal(gone, wanted);
  CHECK(gone.streamed == nullptr);
}

TEST_CASE("what tenants asked of engines is summed for each tenant and model") {
  const auto entry = [](const char* tenant, const char* model, std::int64_t n) {
    const auto u = static_cast<std::uint64_t>(n);
    tenant_stats t;
    t.tenant = tenant;
    t.model = model;
    t.requests_waiting = n;
    t.requests_running = n + 1;
    t.prompt_tokens = u + 2;
    t.cached_prompt_tokens = u + 3;
    t.generation_tokens = u + 4;
    t.finished = {{"stop", u + 5}};
    t.time_to_first_token_seconds = counted(u, u + 6, 1);
    t.time_per_output_token_seconds = counted(u, u + 7, 2);
    t.e2e_request_latency_seconds = counted(u, u + 8, 3);
    t.request_queue_time_seconds = counted(u, u + 9, 4);
    return t;
  };
  std::vector<tenant_stats> sum{entry("a", "m", 10), entry("b", "m", 20)};
  auto more = entry("a", "m", 100);
  more.finished["length"] = 1;
  add_tenants(sum, {more, entry("a", "other", 30)});
  REQUIRE(sum.size() == 3);
  CHECK(sum[1].requests_waiting == 20); // belongs to another tenant
  CHECK(sum[2].model == "other");
  const tenant_stats& a = sum[0];
  CHECK(a.requests_waiting == 110);
  CHECK(a.requests_running == 112);
  CHECK(a.prompt_tokens == 114);
  CHECK(a.cached_prompt_tokens == 116);
  CHECK(a.generation_tokens == 118);
  CHECK(a.finished.at("stop") == 120);
  CHECK(a.finished.at("length") == 1);
  check_equal(a.time_to_first_token_seconds, counted(110, 122, 2));
  check_equal(a.time_per_output_token_seconds, counted(110, 124, 4));
  check_equal(a.e2e_request_latency_seconds, counted(110, 126, 6));
  check_equal(a.request_queue_time_seconds, counted(110, 128, 8));
}
