// offload_job runs an offline job with a model that may be larger than its device: what a job needs
// of its decoder and of the host, and the tokens, times and traffic that it reports.
#include <chrono>
#include <vector>

#include "models/offload/job/offload_job.hpp"
#include "models/offload/streams/weight_stream.hpp"
#include "tests/catch.hpp"
#include "tests/models/offload/loaded_job.hpp"

using namespace twill;
using models::offload::job_mode;
using test::load_for, test::run_job;

TEST_CASE("in one step of a job all sequences that are alive may draw", "[offload]") {
  const std::vector<models::offload::job_prompt> prompts(400, {{1, 2, 3}, 14});
  models::offload::job_options run;
  run.batch_size = 100;
  run.n_batches = 3;
  run.mode = job_mode::fused;
  const auto fused = models::offload::needs_of(prompts, run, 8);
  CHECK(fused.max_sequences == 300);
  CHECK(fused.max_logit_rows == 300);
  CHECK(fused.max_step_tokens >= 300);
  CHECK(fused.max_context_tokens == 17);
  CHECK(fused.n_blocks == 300 * 3);
  run.mode = job_mode::zigzag;
  run.batch_size = 290;
  const auto apart = models::offload::needs_of(prompts, run, 8);
  CHECK(apart.max_sequences == 290);
  CHECK(apart.max_logit_rows >= 290);
  CHECK(apart.max_step_tokens >= 290);
}

TEST_CASE("a job counts its tokens, tells how far it is, and shares its traffic among rounds",
          "[offload]") {
  const test::golden_folder c("opt-tiny-fp32");
  std::vector<models::offload::job_prompt> prompts;
  std::int64_t in_prompts = 0, drawn = 0;
  for (const std::int32_t n : {30, 1, 12, 50, 7}) {
    prompts.push_back({std::vector<std::int32_t>(static_cast<std::size_t>(n), 9), 1 + n % 4});
    in_prompts += n;
    drawn += 1 + n % 4;
  }
  for (const job_mode mode : {job_mode::zigzag, job_mode::diagonal, job_mode::fused}) {
    CAPTURE(name_of(mode));
    models::offload::job_options run;
    run.mode = mode;
    run.batch_size = 2;
    run.n_batches = 2;
    run.step_tokens = 16;
    if (mode != job_mode::fused) run.kv = run.hidden = {0, 100};
    std::int64_t last_done = 0;
    run.progress = [&](std::int64_t done, std::int64_t total) {
      CHECK(done > last_done);
      CHECK(total == in_prompts + drawn);
      last_done = done;
    };
    models::offload::offload_options homes;
    homes.kv_buffers = 2;
    if (mode == job_mode::fused) {
      homes.weights = {0, 100};
      homes.ring_layers = 1; // every step fetches every layer
    }
    const test::loaded_job l = load_for(c, prompts, run, homes);
    const auto moved_weights = [&] {
      const auto* stream = l.decoder->stream();
      return stream == nullptr ? 0 : stream->stats().host_bytes;
    };
    const std::int64_t before = moved_weights();
    const auto ran = run_job(l, prompts, run);
    REQUIRE(ran.ok());
    const models::offload::job_report& report = ran.value();
    REQUIRE(report.error == "");
    CHECK(report.prompt_tokens == in_prompts);
    CHECK(report.output_tokens == drawn);
    CHECK(report.prefill_drawn == 5);
    CHECK(last_done == in_prompts + drawn);
    CHECK(report.prefill_seconds > 0);
    CHECK(report.decode_seconds > 0);
    double seconds = 0, decoding = 0;
    std::int64_t bytes = 0;
    for (const models::offload::job_round& r : report.rounds) {
      CHECK(r.decode_seconds >= 0);
      CHECK(r.decode_seconds <= r.seconds * 1.000001);
      seconds += r.seconds;
      decoding += r.decode_seconds;
      bytes += r.moved_bytes;
    }
    for (std::size_t i = 1; i < report.rounds.size(); ++i) {
      const std::chrono::duration<double> apart =
          report.rounds[i].ended - report.rounds[i - 1].ended;
      CHECK(report.rounds[i].seconds <= apart.count() + 1e-6);
      if (mode != job_mode::fused) // the rounds of a block follow without gaps
        CHECK(report.rounds[i].seconds >= apart.count() - 1e-6);
    }
    CHECK(seconds == Approx(report.total_seconds()));
    CHECK(decoding == Approx(report.decode_seconds));
    if (mode == job_mode::fused) {
      CHECK(bytes > 0);
      CHECK(bytes <= moved_weights() - before);
    } else {
      const auto& kv = report.kv_moved;
      const auto& hidden = report.hidden_moved;
      CHECK(kv.loaded_bytes > 0);
      CHECK(hidden.stored_bytes > 0);
      CHECK(bytes == kv.loaded_bytes + kv.stored_bytes + hidden.loaded_bytes + hidden.stored_bytes);
    }
  }
}

TEST_CASE("a job that draws one token from each prompt spends nothing on decoding", "[offload]") {
  const test::golden_folder c("opt-tiny-fp32");
  const std::vector<models::offload::job_prompt> prompts(5, {std::vector<std::int32_t>(20, 9), 1});
  for (const job_mode mode : {job_mode::zigzag, job_mode::diagonal, job_mode::fused}) {
    CAPTURE(name_of(mode));
    models::offload::job_options run;
    run.mode = mode;
    run.batch_size = 2;
    run.n_batches = 2;
    const test::loaded_job l = load_for(c, prompts, run, {});
    const auto ran = run_job(l, prompts, run);
    REQUIRE(ran.ok());
    CHECK(ran.value().prefill_drawn == 5);
    CHECK(ran.value().prefill_seconds > 0);
    CHECK(ran.value().decode_seconds < 1e-9 * ran.value().prefill_seconds + 1e-12);
  }
}

TEST_CASE("a step has room for the longest prompts of a micro-batch, or for all and their decodes",
          "[offload]") {
  std::vector<models::offload::job_prompt> prompts;
  for (const std::size_t n : {10, 20, 25, 1, 7})
    prompts.push_back({std::vector<std::int32_t>(n, 9), 3});
  models::offload::job_options run;
  run.batch_size = 2;
  run.step_tokens = 512;
  CHECK(step_tokens_for(prompts, run) == 30);
  run.batch_size = 3;
  CHECK(step_tokens_for(prompts, run) == 55);
  run.mode = job_mode::fused;
  CHECK(step_tokens_for(prompts, run) == 63 + 5);
  run.step_tokens = 40;
  CHECK(step_tokens_for(prompts, run) == 40);
  CHECK(step_tokens_for({}, run) == 1);
}

TEST_CASE("KV and hidden states keep to the host memory that they may take", "[offload]") {
  const test::golden_folder c("opt-tiny-fp32");
  const std::vector<models::offload::job_prompt> prompts(2, {std::vector<std::int32_t>(20, 9), 2});
  for (const bool kv : {true, false}) {
    CAPTURE(kv);
    models::offload::job_options run;
    run.batch_size = 1;
    run.n_batches = 2;
    run.step_tokens = 32;
    (kv ? run.kv : run.hidden) = {0, 100};
    const auto ran_with = [&](std::int64_t host_bytes) {
      models::offload::offload_options homes; // weights stay on the device
      homes.host_bytes = host_bytes;
      const test::loaded_job l = load_for(c, prompts, run, homes);
      return run_job(l, prompts, run);
    };
    // Hidden states of 32 rows of 96 floats, aligned; KV of 3 blocks and one that is not full.
    const std::int64_t needed =
        kv ? 2 * c.spec.n_layers * (3 + 1) * models::offload::store_aligned(2 * 8 * 96 * 4)
           : 2 * models::offload::store_aligned(32 * 96 * 4);
    const auto refused = ran_with(needed - 1);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.code() == models::errc::out_of_memory);
    CHECK(refused.detail().find("the host tier must hold") != std::string::npos);
    CHECK(refused.detail().find(kv ? "of KV" : "of hidden states") != std::string::npos);
    CHECK(ran_with(needed).ok());
  }
}

TEST_CASE("KV and hidden states take at least the time that a simulated link says", "[offload]") {
  const test::golden_folder c("opt-tiny-fp32");
  // The last step fills no block, so all transfers that count as moved end before it.
  const std::vector<models::offload::job_prompt> prompts(3, {std::vector<std::int32_t>(96, 9), 2});
  for (const bool kv : {true, false})
    for (const std::int32_t on_host : {0, 100}) {
      CAPTURE(kv, on_host);
      models::offload::job_options run;
      run.batch_size = 1;
      run.n_batches = 3;
      run.step_tokens = 16; // six pieces for each prompt; not all fit on the device
      (kv ? run.kv : run.hidden) = {0, on_host};
      models::offload::offload_options homes; // weights stay on the device
      homes.kv_buffers = 2;                   // for 6 images, so that images are read again
      homes.link_bytes_per_second = kv ? 12e6 : 4e6;
      const test::loaded_job l = load_for(c, prompts, run, homes);
      const auto began = std::chrono::steady_clock::now();
      const auto ran = run_job(l, prompts, run);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
      REQUIRE(ran.ok());
      REQUIRE(ran.value().error == "");
      const auto& moved = kv ? ran.value().kv_moved : ran.value().hidden_moved;
      CHECK(moved.stored_bytes > 0);
      CHECK(moved.loaded_bytes > 0);
      const auto bytes = static_cast<double>(moved.loaded_bytes + moved.stored_bytes);
      CHECK(took.count() > 0.9 * bytes / homes.link_bytes_per_second);
    }
}
