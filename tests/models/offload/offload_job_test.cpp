// offload_job runs an offline job with a model that may be larger than its device. Whatever the
// schedule, the memory tiers and the micro-batches are, each prompt gets the tokens of its greedy
// continuation when it runs alone.
#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "models/offload/job/offload_job.hpp"
#include "tests/catch.hpp"
#include "tests/models/offload/loaded_job.hpp"
#include "tests/models/support/faulty_store.hpp"
#include "tests/models/support/golden_folder.hpp"

using namespace twill;
using models::offload::job_finish;
using models::offload::job_mode;
using test::id_list;
using test::load_for, test::run_job;

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
      // With a simulated link of any speed, blocks of KV that are not full are moved, too.
      homes.link_bytes_per_second = random() % 2 == 0 ? 0 : 1e12;
      CAPTURE(homes.link_bytes_per_second, name_of(run.mode), run.batch_size, run.n_batches,
              run.step_tokens, homes.weights.device, homes.weights.host, homes.kv_buffers,
              homes.sep_layer, run.kv.device, run.kv.host, run.hidden.device, run.hidden.host);
      std::vector<id_list> wanted;
      for (const auto& p : prompts)
        wanted.push_back(alone(solo, p));
      const bool ends = random() % 2 == 0;
      if (ends) run.end_ids = {wanted[0].back()};

      const test::loaded_job l = load_for(c, prompts, run, homes, kv_type);
      const auto ran = run_job(l, prompts, run);
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
          homes.link_bytes_per_second = batch == 2 ? 1e12 : 0; // a link moves partial blocks, too
          const test::loaded_job l = load_for(c, prompts, run, homes, kv_type);
          const auto ran = run_job(l, prompts, run);
          REQUIRE(ran.ok());
          REQUIRE(ran.value().error == "");
          std::vector<id_list> outputs;
          for (const auto& o : ran.value().outputs)
            outputs.push_back(o.ids);
          if (wanted.empty()) wanted = outputs;
          CHECK(outputs == wanted);
          CHECK(ran.value().kv_moved.loaded_bytes > 0);
        }
    // Prefill attends to KV before it is rounded, so that the first tokens are exact.
    for (std::size_t i = 0; i < prompts.size(); ++i)
      CHECK(wanted[i].front() == alone(solo, prompts[i]).front());
  }
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
    const test::loaded_job l = load_for(c, prompts, run, homes);
    const auto ran = run_job(l, prompts, run);
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
    homes.ring_layers = 1; // every round reads weights
    homes.open_store = [faults]() -> models::result<std::unique_ptr<models::offload::disk_store>> {
      return std::unique_ptr<models::offload::disk_store>(
          std::make_unique<test::faulty_store>(faults));
    };
    const test::loaded_job l = load_for(c, prompts, run, homes);
    faults->fail_read = faults->reads + 3 + static_cast<int>(random() % 30);
    const auto ran = run_job(l, prompts, run);
    REQUIRE(ran.ok());
    // A failed read of weights that no later round uses is not an error.
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
    const test::loaded_job l = load_for(c, prompts, run, homes);
    if (flipped) faults->flip_read = 5;
    const auto ran = run_job(l, prompts, run);
    REQUIRE(ran.ok());
    CHECK(faults->reads > 5);
    const auto& moved = ran.value().hidden_moved;
    // Each of the 43 rows of each of 7 prompts is stored once before each layer.
    CHECK(moved.loaded_bytes > 0);
    CHECK(moved.loaded_bytes <= moved.stored_bytes);
    if (!flipped) {
      CHECK(moved.stored_bytes == std::int64_t{43} * 7 * c.spec.n_layers * c.spec.hidden_size * 4);
      CHECK(ran.value().error.empty());
    } else
      CHECK(ran.value().error.find("hidden states at") != std::string::npos);
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
      homes.kv_buffers = 4;                   // for 8 images, so that images are read again
      homes.open_store =
          [faults]() -> models::result<std::unique_ptr<models::offload::disk_store>> {
        return std::unique_ptr<models::offload::disk_store>(
            std::make_unique<test::faulty_store>(faults));
      };
      const test::loaded_job l = load_for(c, prompts, run, homes);
      if (flipped) faults->flip_read = 0;
      const auto ran = run_job(l, prompts, run);
      REQUIRE(ran.ok());
      CHECK(faults->reads > 0);
      if (!flipped)
        CHECK(ran.value().error.empty());
      else
        CHECK(ran.value().error.find("is not what was written there (checksum)") !=
              std::string::npos);
    }
}
