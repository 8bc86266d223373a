// How much of its device a decoder takes, compared with sums that are written out here.
#include "actors/executor/decoder_sizing.hpp"

#include <algorithm>
#include <memory>
#include <string>

#include "config/base/units.hpp"
#include "models/decoder/decoder.hpp"
#include "models/memory_estimate/memory_estimate.hpp"
#include "models/model.hpp"
#include "tests/catch.hpp"
#include "tests/gpu/portable_ops.hpp"

using namespace twill;
using namespace twill::actors;

namespace {

constexpr std::int32_t block_tokens = 16, context = 1024;

struct fixture {
  fixture() {
    auto opened = models::open_model("dummy:opt-125m?layers=4&vocab=1000", "");
    if (!opened.ok()) throw std::runtime_error(opened.detail());
    model = std::move(opened).value();
    options.kv.block_tokens = block_tokens;
    options.scheduler.max_running = 8;
    options.scheduler.max_step_tokens = 64;
    options.scheduler.max_context_tokens = context;
  }
  model_on_device load() {
    const auto choice =
        models::resolve_compute("f32", "f32", model->spec, *model->weights, device->info());
    return {options, *device, *model, choice.value(), available, promised};
  }
  std::int64_t block_bytes() { // keys and values of each layer in f32
    return std::int64_t{2} * model->spec.n_layers * block_tokens * model->spec.n_kv_heads *
           model->spec.head_dim * 4;
  }

  std::shared_ptr<const models::model> model;
  config::options options;
  std::unique_ptr<gpu::device> device = gpu::device::open({.kind = "host", .threads = 1}).value();
  std::int64_t available = 1024 * mib, promised = 0;
};

} // namespace

TEST_CASE("a decoder has the KV and the steps that were asked for", "[actors]") {
  fixture r;
  r.options.kv.memory_bytes = 10 * r.block_bytes() + 1;
  const auto size = size_decoder(r.load());
  REQUIRE(size.ok());
  const models::decoder_options& got = size.value().options;
  CHECK(got.n_blocks == 10);
  CHECK(got.block_tokens == block_tokens);
  CHECK(got.max_context_tokens == context);
  CHECK(got.max_step_tokens == 64);
  CHECK(got.max_sequences == 8);
  CHECK(got.max_logit_rows == 8);
  CHECK_FALSE(got.offload.streams_weights());
  r.options.scheduler.max_step_tokens = 4; // a step has no more sequences than rows
  CHECK(size_decoder(r.load()).value().options.max_sequences == 4);
  r.options.scheduler.max_context_tokens = 0;
  CHECK(size_decoder(r.load()).value().options.max_context_tokens == r.model->spec.context_length);
}

TEST_CASE("KV that does not fit is refused with what does", "[actors]") {
  fixture r;
  r.options.kv.memory_bytes = r.block_bytes() - 1;
  const auto small = size_decoder(r.load());
  REQUIRE_FALSE(small.ok());
  CHECK(small.detail().find("`kv.memory` must hold at least one block of " +
                            format_bytes(r.block_bytes())) != std::string::npos);
  r.options.kv.memory_bytes = r.available + 1;
  const auto large = size_decoder(r.load());
  REQUIRE_FALSE(large.ok());
  CHECK(large.detail().find("`kv.memory` must be at most") != std::string::npos);
  CHECK(large.detail().find("of free memory") != std::string::npos);
  r.options.device.memory_bytes = 256 * mib;
  const auto of_budget = size_decoder(r.load()).detail();
  CAPTURE(of_budget);
  CHECK(of_budget.find("`device.memory` (" + format_bytes(256 * mib) + ")") != std::string::npos);
}

TEST_CASE("what a model needs of a device is its weights, its steps and its KV", "[actors]") {
  fixture r;
  const auto full = (context / block_tokens) * r.block_bytes(); // bytes of the KV of one sequence
  const auto free = estimate_need(r.load());
  CHECK(free.kv == 8 * full);
  CHECK(free.weights > 0);
  CHECK(free.workspace > 0);
  CHECK(free.all() == free.weights + free.workspace + free.kv);
  r.available = 16 * full;
  CHECK(estimate_need(r.load()).kv == 4 * full); // a quarter of the memory
  r.options.kv.memory_bytes = 3 * r.block_bytes() + 5;
  CHECK(estimate_need(r.load()).kv == 3 * r.block_bytes());
}

TEST_CASE("a step's workspace has room for its draws, whatever ops the device has", "[actors]") {
  fixture r;
  auto opened = models::open_model("dummy:opt-125m?layers=1&vocab=50000", "");
  REQUIRE(opened.ok());
  r.model = std::move(opened).value();
  r.options.scheduler.max_running = r.options.scheduler.max_step_tokens = 200;
  r.available = 256 * mib;
  const auto sizes = size_decoder(r.load()).value().options;
  REQUIRE(sizes.max_logit_rows == 200);
  const std::int64_t steps = models::estimate_step_bytes(r.device->info(), r.model->spec, sizes);
  // The memory that the sampler takes for penalties, biases and masks. One pass of the sampler has
  // room for 256 token counts of 12 bytes for each of 200 rows, two biases of 8 bytes for each of
  // 50,000 tokens, and masks of one bit for each token in 64 rows.
  const std::int64_t arrays = 200 * 256 * 12 + 2 * 50000 * 8 + 64 * 1563 * 4;
  const std::int64_t on_host = r.load().workspace_bytes(sizes);
  CHECK(on_host >= steps + arrays + 8 * mib);
  CHECK(on_host < steps + arrays + 16 * mib); // one thread copies one row at a time
  r.device = gpu::device::open({.kind = "host", .threads = 1, .ops = test::portable_ops()}).value();
  // 128 rows are copied at once for log-probabilities.
  CHECK(r.load().workspace_bytes(sizes) >= steps + arrays + 8 * mib + 128 * 50000 * 4);
}

TEST_CASE("weights that do not fit on the device go to host memory while it has room", "[actors]") {
  fixture r;
  r.options.kv.memory_bytes = 10 * r.block_bytes();
  const auto need = estimate_need(r.load());
  r.available = need.all() - need.weights / 2;
  r.options.offload.host_memory_bytes = need.weights;
  const auto streamed = size_decoder(r.load());
  if (!streamed.ok()) FAIL(streamed.detail());
  const models::offload::offload_options& placed = streamed.value().options.offload;
  REQUIRE(placed.streams_weights());
  CHECK(placed.weights.device + placed.weights.host == 100);
  // The plan estimates the speed of all sequences together and of one that runs alone.
  const auto& plan = streamed.value().plan;
  REQUIRE(plan.has_value());
  CHECK(plan->alone_tokens_per_s > 0);
  CHECK(plan->alone_tokens_per_s <= plan->tokens_per_s * 1.001);
  CHECK(plan->machine.disk_read_bytes_per_s > 1);
  r.options.offload.host_memory_bytes = need.weights / 10;
  const auto short_of_memory = size_decoder(r.load());
  REQUIRE(short_of_memory.ok());
  const auto& spread = short_of_memory.value().options.offload;
  CHECK(spread.weights.host > 0);
  CHECK(spread.weights.device + spread.weights.host < 100); // the rest is on disk
}

TEST_CASE("a machine that may not be measured streams without a plan where its speeds are unknown",
          "[actors]") {
  fixture r;
  r.options.kv.memory_bytes = 10 * r.block_bytes();
  // No earlier run has stored measurements with this number of threads.
  r.options.offload.io_threads = 61;
  const auto need = estimate_need(r.load());
  r.available = need.all() - need.weights / 2;
  r.options.offload.host_memory_bytes = need.weights;
  model_on_device load = r.load();
  load.measure = models::offload::measuring::never;
  const auto streamed = size_decoder(load);
  if (!streamed.ok()) FAIL(streamed.detail());
  CHECK(streamed.value().options.offload.streams_weights());
  CHECK_FALSE(streamed.value().plan.has_value());
}
