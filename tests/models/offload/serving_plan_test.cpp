// A daemon's plan for a model that does not fit on the device: it costs little more than the best
// of all possible plans, it keeps what the user fixed, and it fits.
#include <algorithm>
#include <optional>

#include "models/offload/plan/plan_memory.hpp"
#include "models/offload/plan/serving_plan.hpp"
#include "tests/catch.hpp"
#include "tests/models/offload/planning_machines.hpp"

using namespace twill::models::offload;
using namespace twill::tests;

namespace {

serving_request request_for(const offload_model& model, const machine_description& machine) {
  serving_request r;
  r.model = model;
  r.machine = machine;
  r.work = {512, 128, 0};
  r.ring_layers = 3;
  r.workspace_bytes = 0.1 * gib_d;
  r.step_token_bytes = 4.0 * (4 * model.hidden_size + 3 * model.mlp_size + 3 * model.q_size);
  return r;
}

/// A small device: most weights fit beside the KV of one sequence, none beside that of many.
serving_request mistral_on_6_gib() {
  auto machine = a6000_pcie4();
  machine.device_bytes = 6 * gib_d;
  return request_for(mistral_7b(), machine);
}

double device_bytes_of(const serving_request& r, const serving_plan& p) {
  const double layer = layer_weight_bytes(r.model);
  const double all = r.model.n_layers * layer + outer_weight_bytes(r.model) - r.small_bytes;
  const double ring = p.weights.device < 1 ? r.ring_layers * layer : 0;
  return r.workspace_bytes + p.step_tokens * r.step_token_bytes + p.kv_bytes + r.small_bytes +
         p.weights.device * all + ring;
}

/// The highest rate over all numbers of sequences and step lengths, each set as a user would.
double best_of_all(serving_request r) {
  const double sequence =
      kv_bytes_per_position(r.model) * r.model.n_layers * (r.work.prompt_len + r.work.gen_len);
  double best = 0;
  for (const std::int32_t step : {512, 1024, 2048, 4096, 8192})
    for (std::int32_t n = 1; n <= r.max_running; ++n) {
      r.step_tokens = step;
      r.kv_bytes = n * sequence;
      if (const auto plan = plan_serving(r)) best = std::max(best, plan->tokens_per_s);
    }
  return best;
}

} // namespace

TEST_CASE("a daemon's plan is within a twentieth of the best of all, and fits") {
  auto host = small_host();
  host.host_bytes = 0; // what does not fit on the device goes to disk
  for (const auto& r :
       {mistral_on_6_gib(), request_for(opt_1_3b(), host), request_for(opt_30b(), a6000_pcie4())}) {
    const auto plan = plan_serving(r);
    REQUIRE(plan);
    CHECK(plan->tokens_per_s >= 0.95 * best_of_all(r));
    CHECK(device_bytes_of(r, *plan) <= r.machine.device_bytes * (1 + 1e-9));
    CHECK(plan->weights.device + plan->weights.host <= 1 + 1e-9);
  }
}

TEST_CASE("where fetches bound a daemon, KV for more sequences is worth more than weights") {
  const auto r = mistral_on_6_gib();
  auto one = r;
  one.max_running = 1;
  const auto alone = plan_serving(one), together = plan_serving(r);
  REQUIRE(alone);
  REQUIRE(together);
  CHECK(alone->n_sequences == 1);
  CHECK(together->n_sequences > 8);
  CHECK(together->weights.device < alone->weights.device);
  CHECK(together->tokens_per_s > 4 * alone->tokens_per_s);
}

TEST_CASE("steps grow while a fetch takes longer than a step's products") {
  auto fetches = request_for(opt_30b(), a6000_pcie4());
  fetches.machine.h2d_bytes_per_s /= 8;
  fetches.work = {2048, 32, 0}; // many rows per drawn token
  auto computes = fetches;
  computes.machine.device_flops /= 1000;
  CHECK(plan_serving(fetches)->step_tokens > default_step_tokens);
  CHECK(plan_serving(fetches)->bound == offload_resource::h2d);
  CHECK(plan_serving(computes)->step_tokens == default_step_tokens);
  CHECK(plan_serving(computes)->bound == offload_resource::device);
}

TEST_CASE("a prompt of several steps costs a fetch of the weights for each of them") {
  auto r = mistral_on_6_gib();
  r.machine.h2d_bytes_per_s = 1e6; // so slow that all other times are negligible
  r.max_running = 1;
  r.step_tokens = 512;
  r.kv_bytes = 1 * gib_d;
  r.host_share = 1;
  const auto fetches = [&](std::int32_t prompt, std::int32_t output) {
    r.work = {prompt, output, 0};
    const auto plan = plan_serving(r);
    REQUIRE(plan);
    CHECK(plan->bound == offload_resource::h2d);
    return output / plan->tokens_per_s;
  };
  // The last step of the prompt draws the first token.
  const double one = fetches(512, 8) / 8;
  CHECK(fetches(511, 8) == Approx(8 * one));
  CHECK(fetches(513, 8) == Approx(9 * one));
  CHECK(fetches(1536, 4) == Approx(6 * one));
}

TEST_CASE("a device too small for usual steps gets shorter ones") {
  auto r = request_for(opt_1_3b(), small_host());
  r.machine.device_bytes = r.workspace_bytes + 300 * r.step_token_bytes +
                           r.ring_layers * layer_weight_bytes(r.model) + 0.2 * gib_d;
  r.step_token_bytes = 1 << 20;
  const auto plan = plan_serving(r);
  REQUIRE(plan);
  CHECK(plan->step_tokens < default_step_tokens);
  CHECK(device_bytes_of(r, *plan) <= r.machine.device_bytes * (1 + 1e-9));
}

TEST_CASE("a daemon's plan keeps to what the user fixed") {
  auto r = mistral_on_6_gib();
  r.kv_bytes = 1 * gib_d;
  r.step_tokens = 256;
  r.host_share = 0.25;
  r.max_running = 4;
  const auto plan = plan_serving(r);
  REQUIRE(plan);
  CHECK(plan->kv_bytes == 1 * gib_d);
  CHECK(plan->step_tokens == 256);
  CHECK(plan->weights.host == Approx(0.25));
  CHECK(plan->n_sequences <= 4);
  r.kv_bytes.reset();
  r.least_kv_bytes = 2 * gib_d;
  CHECK(plan_serving(r)->kv_bytes >= 2 * gib_d);
}

TEST_CASE("a model that fits stays on the device; one whose ring does not fit has no plan") {
  const auto fits = plan_serving(request_for(opt_1_3b(), a6000_pcie4()));
  REQUIRE(fits);
  CHECK(fits->weights.device == 1);
  CHECK_FALSE(plan_serving(request_for(opt_175b(), small_host())));
}
