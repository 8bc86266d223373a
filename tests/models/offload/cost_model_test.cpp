// The cost model's closed formula, compared with plain sums and with a simulation of every task.
#include <algorithm>
#include <array>
#include <random>

#include "models/offload/plan/cost_model.hpp"
#include "models/offload/plan/simulation.hpp"
#include "tests/catch.hpp"
#include "tests/models/offload/planning_machines.hpp"

using namespace twill::models::offload;
using namespace twill::tests;

namespace {

offload_policy policy_of(std::int32_t batch_size, std::int32_t n_batches, tier_split weights,
                         tier_split kv, tier_split hidden) {
  offload_policy policy;
  policy.batch_size = batch_size;
  policy.n_batches = n_batches;
  policy.weights = weights;
  policy.kv = kv;
  policy.hidden = hidden;
  return policy;
}

tier_split any_split(std::mt19937& rng) {
  std::uniform_int_distribution<int> part(0, 4);
  const double device = part(rng), host = part(rng), disk = part(rng);
  const double sum = device + host + disk;
  return sum == 0 ? tier_split{} : tier_split{device / sum, host / sum};
}

} // namespace

TEST_CASE("weights from disk, one micro-batch: as long as reading them every round") {
  const auto on = small_host();
  const auto m = opt(12, 768);
  const auto policy = policy_of(1, 1, {0, 0}, {1, 0}, {1, 0});
  const offload_workload work{16, 8, 0};
  const double read_s = 12 * layer_weight_bytes(m) / on.disk_read_bytes_per_s;
  const auto found = estimate(m, on, policy, work);
  CHECK(found.total_s() == Approx(8 * read_s).epsilon(0.25)); // the head adds its own time
  CHECK(found.busy[offload_resource::disk_read] == Approx(8 * read_s));
  CHECK(found.busy.busiest() == offload_resource::disk_read);
}

TEST_CASE("a block of micro-batches shares each fetch") {
  const auto on = t4_paper();
  const offload_workload work{512, 32, 0};
  const auto rate = [&](std::int32_t n) {
    return estimate(opt_30b(), on, policy_of(4, n, {0, 1}, {1, 0}, {1, 0}), work).tokens_per_s;
  };
  CHECK(rate(2) > 1.8 * rate(1));
  CHECK(rate(4) > 3 * rate(1));
}

TEST_CASE("prefill and decode add up, and each is booked where it belongs") {
  const auto on = a6000_pcie4();
  const offload_workload work{512, 32, 0};
  auto policy = policy_of(8, 4, {1, 0}, {1, 0}, {1, 0});
  const auto zigzag = estimate(opt_1_3b(), on, policy, work);
  policy.order = search_order::diagonal;
  const auto diagonal = estimate(opt_1_3b(), on, policy, work);
  // With resident weights no fetch is shared, so that both orders take the same time.
  CHECK(diagonal.prefill_s == Approx(zigzag.prefill_s).epsilon(0.02));
  CHECK(diagonal.total_s() == Approx(zigzag.total_s()).epsilon(0.02));
}

TEST_CASE("a diagonal over a queue hides fetches behind prefills") {
  const auto on = a6000_pcie4();
  const offload_workload work{512, 32, 8 * 8 * 32};
  auto policy = policy_of(8, 8, {0, 1}, {1, 0}, {1, 0});
  const double zigzag = estimate(opt_30b(), on, policy, work).tokens_per_s;
  policy.order = search_order::diagonal;
  policy.stagger = even_stagger(32, 8);
  const double diagonal = estimate(opt_30b(), on, policy, work).tokens_per_s;
  CHECK(diagonal > zigzag);
}

TEST_CASE("host attention moves queries instead of KV") {
  const auto on = a6000_pcie4();
  const offload_workload work{1024, 32, 0};
  auto policy = policy_of(16, 2, {1, 0}, {0, 1}, {1, 0});
  const double moved = estimate(opt_1_3b(), on, policy, work).tokens_per_s;
  policy.host_attention = true;
  const auto on_host = estimate(opt_1_3b(), on, policy, work);
  CHECK(on_host.tokens_per_s > moved);
  CHECK(on_host.busy[offload_resource::host] > 0);
}

TEST_CASE("packed KV moves fewer bytes, and costs the device its unpacking") {
  auto on = t4_paper();
  auto m = opt_30b();
  const auto policy = policy_of(8, 4, {1, 0}, {0.25, 0.25}, {1, 0});
  const offload_workload work{512, 32, 0};
  const auto plain = estimate(m, on, policy, work);
  m.kv_packed_bytes_per_value = 0.5;
  const auto free = estimate(m, on, policy, work);
  using enum offload_resource;
  for (const auto r : {h2d, d2h, disk_read, disk_write})
    CHECK(free.busy[r] == Approx(plain.busy[r] / 4));
  CHECK(free.busy[device] == Approx(plain.busy[device]));

  on.unpacked_values_per_s = 1e9;
  const auto paid = estimate(m, on, policy, work);
  double unpacked = 0; // positions: those written, then those that each decode attends to
  for (int step = 0; step < 32; ++step)
    unpacked += step == 0 ? 512 : 1 + 512 + step;
  const double values = 2.0 * m.kv_size * m.n_layers * policy.batch_size * policy.n_batches;
  CHECK(paid.busy[device] - free.busy[device] ==
        Approx(0.75 * values * unpacked / 1e9).epsilon(0.01));
  CHECK(paid.busy[h2d] == Approx(free.busy[h2d]));
}

TEST_CASE("a layer's time goes by measured rows, straight between them, in proportion past them") {
  machine_description on = small_host();
  on.device_bytes_per_s = 1e15;
  on.device_kv_bytes_per_s = 1e15;
  on.device_flops = 1e18; // makes attention free
  on.layer = {{1, 1e-3}, {8, 2e-3}, {64, 9e-3}};
  const auto seconds = [&](std::int32_t rows) {
    const auto policy = policy_of(rows, 1, {1, 0}, {1, 0}, {1, 0});
    return offload_cost(opt(12, 768), on, policy, {1, 8, 0})
        .decode(0)
        .seconds[offload_resource::device];
  };
  CHECK(seconds(1) == Approx(1e-3));
  CHECK(seconds(8) == Approx(2e-3));
  CHECK(seconds(36) == Approx(5.5e-3));
  CHECK(seconds(128) == Approx(18e-3));
  on.device_bytes_per_s = 1e9; // reading 14 MB of weights takes longest
  CHECK(seconds(1) == Approx(layer_weight_bytes(opt(12, 768)) / 1e9));
  on.layer.clear(); // without measured rows, the roofline decides
  on.device_bytes_per_s = 1e15;
  on.device_flops = 1e12;
  CHECK(seconds(128) > seconds(1));
}

TEST_CASE("where one processor does both, transfers take their share of the device's time") {
  machine_description on = small_host();
  on.disk_read_device_share = on.copy_device_share = 0;
  const auto policy = policy_of(8, 4, {0.25, 0.25}, {0.5, 0}, {1, 0});
  const offload_workload work{128, 16, 0};
  using enum offload_resource;
  const auto free = estimate(opt(12, 768), on, policy, work).busy;
  on.disk_read_device_share = 0.1;
  const auto read = estimate(opt(12, 768), on, policy, work).busy;
  CHECK(read[device] - free[device] == Approx(0.1 * free[disk_read]));
  on.copy_device_share = 0.5;
  const auto both = estimate(opt(12, 768), on, policy, work).busy;
  CHECK(both[device] > read[device]);
  CHECK(both[device] - read[device] <= 0.5 * free[h2d]);
  CHECK(both[disk_read] == Approx(free[disk_read]));
}

TEST_CASE("resident runs take the same in closed form and task by task") {
  for (const auto order : {search_order::zigzag, search_order::diagonal})
    for (const auto& on : {small_host(), a6000_pcie4(), t4_paper()}) {
      auto policy = policy_of(8, 4, {1, 0}, {1, 0}, {1, 0});
      policy.order = order;
      const offload_workload work{128, 16, 0};
      const auto closed = estimate(opt(12, 768), on, policy, work);
      const auto played = simulate(opt(12, 768), on, policy, work);
      CHECK(played.total_s == Approx(closed.total_s()).epsilon(0.001));
      CHECK(played.tokens_per_s == Approx(closed.tokens_per_s).epsilon(0.001));
    }
}

TEST_CASE("the closed form and the simulation agree on random plans") {
  std::mt19937 rng(21);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(rng);
  };
  int close = 0, all = 0;
  for (int i = 0; i < 200; ++i) {
    const machine_description on =
        std::array{small_host(), a6000_pcie4(), t4_paper()}[static_cast<std::size_t>(pick(0, 2))];
    const auto m =
        std::array{opt(12, 768), opt_30b(), mistral_7b()}[static_cast<std::size_t>(pick(0, 2))];
    auto policy =
        policy_of(pick(1, 32), pick(3, 8), any_split(rng), any_split(rng), any_split(rng));
    policy.order = pick(0, 1) == 0 ? search_order::zigzag : search_order::diagonal;
    policy.stagger = pick(1, 4);
    policy.host_attention = pick(0, 1) == 0;
    policy.kv_buffers = 6; // with fewer, a long prefill leaves links idle: see below
    const offload_workload work{pick(16, 512), pick(8, 24), 0};
    const auto closed = estimate(m, on, policy, work);
    const auto played = simulate(m, on, policy, work);
    // No resource is busy for longer than the total time, and both methods count the same work.
    CHECK(played.total_s >= 0.999 * played.busy.most());
    for (std::size_t r = 0; r < n_offload_resources; ++r)
      CHECK(played.busy.s[r] == Approx(closed.busy.s[r]).epsilon(0.02));
    const double ratio = played.total_s / closed.total_s();
    INFO("ratio " << ratio << " on " << on.name << " host attention " << policy.host_attention);
    CHECK(ratio > 0.85);
    CHECK(ratio < 1.3);
    ++all;
    if (ratio > 0.9 && ratio < 1.1) ++close;
  }
  INFO(close << " of " << all << " within 10 %");
  CHECK(close > all * 9 / 10);
}

TEST_CASE("few buffers leave a disk idle behind long tasks; more bring it to its bound") {
  const auto on = t4_paper();
  auto policy = policy_of(27, 4, {0.43, 0.14}, {0.5, 0}, {1, 0});
  policy.order = search_order::diagonal;
  policy.stagger = 4;
  const offload_workload work{205, 18, 0};
  const double bound = estimate(mistral_7b(), on, policy, work).total_s();
  policy.kv_buffers = 1;
  const double with_1 = simulate(mistral_7b(), on, policy, work).total_s;
  policy.kv_buffers = 6;
  const double with_6 = simulate(mistral_7b(), on, policy, work).total_s;
  CHECK(with_6 < with_1);
  CHECK(with_6 == Approx(bound).epsilon(0.1));
}

TEST_CASE("the simulation's spans keep each resource to one thing at a time") {
  auto policy = policy_of(4, 3, {0.2, 0.4}, {0.5, 0.3}, {0, 1});
  policy.host_attention = true;
  const offload_workload work{64, 6, 0};
  auto played = simulate(opt(4, 768), t4_paper(), policy, work, 100000);
  REQUIRE(!played.spans.empty());
  std::sort(played.spans.begin(), played.spans.end(),
            [](const auto& a, const auto& b) { return a.start_s < b.start_s; });
  std::array<double, n_offload_resources> end{};
  std::array<double, n_offload_resources> busy{};
  for (const auto& span : played.spans) {
    auto& last = end[static_cast<std::size_t>(span.resource)];
    CHECK(span.start_s >= last - 1e-9);
    last = span.end_s;
    busy[static_cast<std::size_t>(span.resource)] += span.end_s - span.start_s;
  }
  for (std::size_t r = 0; r < n_offload_resources; ++r)
    CHECK(busy[r] == Approx(played.busy.s[r]));
  CHECK(simulate(opt(4, 768), t4_paper(), policy, work, 5).spans.size() == 5);
}
