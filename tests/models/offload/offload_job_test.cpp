// Block runs: whatever the schedule, the tiers and the micro-batches, each prompt has the tokens of
// its greedy continuation alone.
#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "models/offload/job/offload_job.hpp"
#include "models/offload/streams/weight_stream.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/faulty_store.hpp"
#include "tests/models/support/golden_folder.hpp"

using namespace twill;
using models::offload::job_finish;
using models::offload::job_mode;
using test::id_list;

namespace {

id_list alone(test::decoder_runner& runner, const models::offload::job_prompt& p) {
  id_list out;
  test::logit_row logits = runner.prefill(0, p.ids, p.ids.size());
  while (true) {
    out.push_back(test::argmax(logits));
    if (static_cast<std::int32_t>(out.size()) == p.max_new) break;
    logits = runner.step({{0, {out.back()}}}).front();
  }
  runner.release(0);
  return out;
}

std::vector<models::offload::job_prompt> random_prompts(std::mt19937& random, std::int32_t vocab) {
  std::vector<models::offload::job_prompt> prompts(1 + random() % 9);
  for (auto& p : prompts) {
    for (std::size_t i = 1 + random() % 50; i > 0; --i)
      p.ids.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(vocab)));
    p.max_new = static_cast<std::int32_t>(1 + random() % 6);
  }
  return prompts;
}

models::offload::job_options random_run(std::mt19937& random) {
  models::offload::job_options o;
  o.mode = static_cast<job_mode>(random() % 3);
  o.batch_size = static_cast<std::int32_t>(1 + random() % 4);
  o.n_batches = static_cast<std::int32_t>(1 + random() % 4);
  o.stagger = static_cast<std::int32_t>(1 + random() % 3);
  o.step_tokens = static_cast<std::int32_t>(1 + random() % 60);
  if (random() % 2 == 0) {
    o.kv.device = static_cast<std::int32_t>(random() % 100);
    o.kv.host = static_cast<std::int32_t>(random() % static_cast<unsigned>(101 - o.kv.device));
    o.attend_on_host = random() % 2 == 0;
  }
  if (random() % 2 == 0) {
    o.hidden.device = static_cast<std::int32_t>(random() % 100);
    o.hidden.host =
        static_cast<std::int32_t>(random() % static_cast<unsigned>(101 - o.hidden.device));
  }
  return o;
}

models::decoder_options options_for(const models::offload::job_needs& needs, gpu::dtype kv_type) {
  models::decoder_options o;
  o.kv_type = kv_type;
  o.block_tokens = 8;
  o.n_blocks = needs.n_blocks;
  o.max_step_tokens = needs.max_step_tokens;
  o.max_sequences = needs.max_sequences;
  o.max_logit_rows = needs.max_logit_rows;
  o.max_context_tokens = needs.max_context_tokens;
  return o;
}

struct loaded {
  models::decoder_options options;
  std::unique_ptr<models::decoder> decoder;
};

loaded load_for(const test::golden_folder& c,
                const std::vector<models::offload::job_prompt>& prompts,
                const models::offload::job_options& run,
                const models::offload::offload_options& homes,
                gpu::dtype kv_type = gpu::dtype::f32) {
  loaded l;
  l.options = options_for(models::offload::needs_of(prompts, run, 8), kv_type);
  l.options.offload = homes;
  if (run.kv.device < 100)
    l.options.kv_staged = models::offload::kv_stream::staged_layers(
        models::offload::kv_options_of(c.spec, l.options, prompts, run));
  auto loaded = models::decoder::load(test::shared_device(), c.spec, *c.weights, l.options, {});
  if (!loaded.ok()) throw std::runtime_error(loaded.detail());
  l.decoder = std::move(loaded).value();
  return l;
}

} // namespace

TEST_CASE("every schedule, tier and split gives each prompt the tokens it has alone", "[offload]") {
  std::mt19937 random(21);
  for (const std::string& name : test::golden_folders()) {
    CAPTURE(name);
    const test::golden_folder c(name);
    const gpu::dtype kv_type =
        std::vector{gpu::dtype::f32, gpu::dtype::f16, gpu::dtype::i8}[random() % 3];
    test::decoder_runner solo(c.spec, *c.weights,
                              test::golden_options(gpu::compute_type::f32, kv_type));
    for (int round = 0; round < 9; ++round) {
      const auto prompts = random_prompts(random, c.spec.vocab_size);
      auto run = random_run(random);
      run.mode = static_cast<job_mode>(round % 3);
      if (run.mode == job_mode::fused) run.kv = run.hidden = {};
      models::offload::offload_options homes;
      homes.weights.device = random() % 4 == 0 ? 100 : static_cast<std::int32_t>(random() % 100);
      homes.weights.host =
          static_cast<std::int32_t>(random() % static_cast<unsigned>(101 - homes.weights.device));
      homes.ring_layers = 2 + static_cast<std::int32_t>(random() % 3);
      homes.kv_buffers = 1 + static_cast<std::int32_t>(random() % 6);
      homes.sep_layer = random() % 2 == 0;
      // With a link, however fast, blocks of KV that are not full travel too.
      homes.link_bytes_per_second = random() % 2 == 0 ? 0 : 1e12;
      CAPTURE(homes.link_bytes_per_second, name_of(run.mode), run.batch_size, run.n_batches,
              run.step_tokens, homes.weights.device, homes.weights.host, homes.kv_buffers,
              homes.sep_layer, run.kv.device, run.kv.host, run.hidden.device, run.hidden.host);
      std::vector<id_list> wanted;
      for (const auto& p : prompts)
        wanted.push_back(alone(solo, p));
      const bool ends = random() % 2 == 0;
      if (ends) run.end_ids = {wanted[0].back()};

      const loaded l = load_for(c, prompts, run, homes, kv_type);
      const auto ran = models::offload::run_offload_job(test::shared_device(), *l.decoder,
                                                        l.options, prompts, run);
      REQUIRE(ran.ok());
      REQUIRE(ran.value().error == "");
      for (std::size_t i = 0; i < prompts.size(); ++i) {
        CAPTURE(i);
        const auto& out = ran.value().outputs[i];
        id_list expected = wanted[i];
        const auto end =
            ends ? std::find(expected.begin(), expected.end(), run.end_ids[0]) : expected.end();
        CHECK(out.finish == (end == expected.end() ? job_finish::length : job_finish::stop));
        expected.erase(end, expected.end());
        CHECK(out.ids == expected);
      }
    }
  }
}

TEST_CASE("KV that travels in 4 bits gives the same tokens by every schedule and tier",
          "[offload]") {
  const test::golden_folder c("llama-tiny-fp16");
  std::mt19937 random(31);
  test::decoder_runner solo(c.spec, *c.weights, test::golden_options());
  for (const gpu::dtype kv_type : {gpu::dtype::f32, gpu::dtype::f16}) {
    std::vector<models::offload::job_prompt> prompts(5);
    for (auto& p : prompts) {
      for (std::size_t i = 9 + random() % 50; i > 0; --i)
        p.ids.push_back(static_cast<std::int32_t>(random() % 200));
      p.max_new = 20;
    }
    std::vector<id_list> wanted;
    for (const bool diagonal : {false, true})
      for (const std::int32_t on_host : {0, 50, 100})
        for (const std::int32_t batch : {1, 2, 5}) {
          CAPTURE(diagonal, on_host, batch);
          models::offload::job_options run;
          run.mode = diagonal ? job_mode::diagonal : job_mode::zigzag;
          run.batch_size = batch;
          run.n_batches = 2;
          run.kv = {0, on_host};
          run.four_bit_kv = true;
          models::offload::offload_options homes;
          homes.link_bytes_per_second = batch == 2 ? 1e12 : 0; // tails travel, too
          const loaded l = load_for(c, prompts, run, homes, kv_type);
          const auto ran = models::offload::run_offload_job(test::shared_device(), *l.decoder,
                                                            l.options, prompts, run);
          REQUIRE(ran.ok());
          REQUIRE(ran.value().error == "");
          std::vector<id_list> outputs;
          for (const auto& o : ran.value().outputs)
            outputs.push_back(o.ids);
          if (wanted.empty()) wanted = outputs;
          CHECK(outputs == wanted);
          CHECK(ran.value().kv_moved.loaded_bytes > 0);
        }
    // The prompt's own pass sees KV before it is rounded.
    for (std::size_t i = 0; i < prompts.size(); ++i)
      CHECK(wanted[i].front() == alone(solo, prompts[i]).front());
  }
}

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

TEST_CASE("a block that is stopped keeps what it has, and says so", "[offload]") {
  const test::golden_folder c("llama-tiny-fp16");
  std::mt19937 random(4);
  for (const job_mode mode : {job_mode::zigzag, job_mode::diagonal, job_mode::fused}) {
    CAPTURE(name_of(mode));
    std::vector<models::offload::job_prompt> prompts(6, {{1, 2, 3, 4}, 8});
    auto run = random_run(random);
    run.mode = mode;
    if (mode == job_mode::fused) run.kv = run.hidden = {};
    int asked = 0;
    run.stop = [&] { return ++asked > 9; };
    models::offload::offload_options homes;
    homes.weights = {0, 50};
    const loaded l = load_for(c, prompts, run, homes);
    const auto ran = models::offload::run_offload_job(test::shared_device(), *l.decoder, l.options,
                                                      prompts, run);
    REQUIRE(ran.ok());
    CHECK(ran.value().stopped == (asked > 9));
    if (ran.value().stopped)
      CHECK(std::any_of(ran.value().outputs.begin(), ran.value().outputs.end(),
                        [](const auto& o) { return o.finish == job_finish::interrupted; }));
  }
}

TEST_CASE("a transfer that fails in a block ends it with its reason and what it has", "[offload]") {
  const test::golden_folder c("opt-tiny-fp32");
  std::mt19937 random(5);
  int n_failed = 0;
  for (int round = 0; round < 9; ++round) {
    const std::vector<models::offload::job_prompt> prompts(6, {{1, 2, 3, 4}, 8});
    auto run = random_run(random);
    run.mode = static_cast<job_mode>(round % 3);
    if (run.mode == job_mode::fused) run.kv = run.hidden = {};
    const auto faults = std::make_shared<test::store_faults>();
    models::offload::offload_options homes;
    homes.weights = {0, 0};
    homes.ring_layers = 1; // every round reads
    homes.open_store = [faults]() -> models::result<std::unique_ptr<models::offload::disk_store>> {
      return std::unique_ptr<models::offload::disk_store>(
          std::make_unique<test::faulty_store>(faults));
    };
    const loaded l = load_for(c, prompts, run, homes);
    faults->fail_read = faults->reads + 3 + static_cast<int>(random() % 30);
    const auto ran = models::offload::run_offload_job(test::shared_device(), *l.decoder, l.options,
                                                      prompts, run);
    REQUIRE(ran.ok());
    // A read ahead of the last use may fail and harm nobody.
    const bool failed = !ran.value().error.empty();
    n_failed += failed ? 1 : 0;
    if (failed) CHECK(ran.value().error.find("ends before") != std::string::npos);
    for (const auto& o : ran.value().outputs) {
      if (!failed || o.ids.size() == 8) CHECK(o.finish == job_finish::length);
      if (o.ids.size() < 8) CHECK(o.finish == job_finish::interrupted);
    }
  }
  CHECK(n_failed > 3);
}

TEST_CASE("hidden states of the disk travel between tasks; a flipped bit ends the run in words",
          "[offload]") {
  const test::golden_folder c("opt-tiny-fp32");
  const std::vector<models::offload::job_prompt> prompts(7, {std::vector<std::int32_t>(40, 9), 4});
  for (const bool flipped : {false, true}) {
    models::offload::job_options run;
    run.batch_size = 1;
    run.n_batches = 7;
    run.step_tokens = 16; // a prompt has three pieces
    run.hidden = {0, 0};
    const auto faults = std::make_shared<test::store_faults>();
    models::offload::offload_options homes; // weights stay on the device
    homes.open_store = [faults]() -> models::result<std::unique_ptr<models::offload::disk_store>> {
      return std::unique_ptr<models::offload::disk_store>(
          std::make_unique<test::faulty_store>(faults));
    };
    const loaded l = load_for(c, prompts, run, homes);
    if (flipped) faults->flip_read = 5;
    const auto ran = models::offload::run_offload_job(test::shared_device(), *l.decoder, l.options,
                                                      prompts, run);
    REQUIRE(ran.ok());
    CHECK(faults->reads > 5);
    const auto& moved = ran.value().hidden_moved;
    // Each of 43 rows of 7 prompts goes home before each layer.
    CHECK(moved.loaded_bytes > 0);
    CHECK(moved.loaded_bytes <= moved.stored_bytes);
    if (!flipped) {
      CHECK(moved.stored_bytes == std::int64_t{43} * 7 * c.spec.n_layers * c.spec.hidden_size * 4);
      CHECK(ran.value().error.empty());
    } else
      CHECK(ran.value().error.find("hidden states at") != std::string::npos);
  }
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
    const loaded l = load_for(c, prompts, run, homes);
    const auto moved_weights = [&] {
      const auto* stream = l.decoder->stream();
      return stream == nullptr ? 0 : stream->stats().host_bytes;
    };
    const std::int64_t before = moved_weights();
    const auto ran = models::offload::run_offload_job(test::shared_device(), *l.decoder, l.options,
                                                      prompts, run);
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
      if (mode != job_mode::fused) // a block's rounds leave no time out
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
    const loaded l = load_for(c, prompts, run, {});
    const auto ran = models::offload::run_offload_job(test::shared_device(), *l.decoder, l.options,
                                                      prompts, run);
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
      const loaded l = load_for(c, prompts, run, homes);
      return models::offload::run_offload_job(test::shared_device(), *l.decoder, l.options, prompts,
                                              run);
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
  // The second token is drawn from a block that is not full: all that counts as moved has arrived.
  const std::vector<models::offload::job_prompt> prompts(3, {std::vector<std::int32_t>(96, 9), 2});
  for (const bool kv : {true, false})
    for (const std::int32_t on_host : {0, 100}) {
      CAPTURE(kv, on_host);
      models::offload::job_options run;
      run.batch_size = 1;
      run.n_batches = 3;
      run.step_tokens = 16; // a prompt has six pieces: not all find room on the device
      (kv ? run.kv : run.hidden) = {0, on_host};
      models::offload::offload_options homes; // weights stay on the device
      homes.kv_buffers = 2;                   // of 6 images: the others are read again
      homes.link_bytes_per_second = kv ? 12e6 : 4e6;
      const loaded l = load_for(c, prompts, run, homes);
      const auto began = std::chrono::steady_clock::now();
      const auto ran = models::offload::run_offload_job(test::shared_device(), *l.decoder,
                                                        l.options, prompts, run);
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

TEST_CASE("KV that comes back from the disk with a flipped bit ends the run in words",
          "[offload]") {
  const test::golden_folder c("opt-tiny-fp32");
  const std::vector<models::offload::job_prompt> prompts(
      4, {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, 6});
  for (const bool four_bits : {false, true})
    for (const bool flipped : {false, true}) {
      CAPTURE(four_bits, flipped);
      models::offload::job_options run;
      run.mode = job_mode::zigzag;
      run.batch_size = 1;
      run.n_batches = 4;
      run.step_tokens = 64;
      run.kv = {0, 0};
      run.four_bit_kv = four_bits;
      const auto faults = std::make_shared<test::store_faults>();
      models::offload::offload_options homes; // weights stay on the device
      homes.kv_buffers = 4;                   // of 8 images: the others are read again
      homes.open_store =
          [faults]() -> models::result<std::unique_ptr<models::offload::disk_store>> {
        return std::unique_ptr<models::offload::disk_store>(
            std::make_unique<test::faulty_store>(faults));
      };
      const loaded l = load_for(c, prompts, run, homes);
      if (flipped) faults->flip_read = 0;
      const auto ran = models::offload::run_offload_job(test::shared_device(), *l.decoder,
                                                        l.options, prompts, run);
      REQUIRE(ran.ok());
      CHECK(faults->reads > 0);
      if (!flipped)
        CHECK(ran.value().error.empty());
      else
        CHECK(ran.value().error.find("is not what was written there (checksum)") !=
              std::string::npos);
    }
}
