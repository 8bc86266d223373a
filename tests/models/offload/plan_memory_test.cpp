// plan_memory estimates from a model's shape how much memory its weights, KV and activations take,
// and the peaks of memory under a plan. The sizes are compared with those that FlexGen prints, and
// the peaks with sums over every task of a schedule.
#include <algorithm>
#include <map>

#include "models/offload/model_shape.hpp"
#include "models/offload/plan/plan_memory.hpp"
#include "tests/catch.hpp"
#include "tests/models/offload/planning_machines.hpp"

using namespace twill::models::offload;
using namespace twill::tests;

TEST_CASE("OPT-1.3B's model, cache and hidden sizes are those that FlexGen prints") {
  const auto line = [](int n_batches) {
    return text_of(sizes_of(opt_1_3b(), 512, 32, 8 * n_batches));
  };
  CHECK(line(4) == "model size: 2.443 GB\tcache size: 3.188 GB\thidden size (p): 0.066 GB");
  CHECK(line(8) == "model size: 2.443 GB\tcache size: 6.375 GB\thidden size (p): 0.133 GB");
  CHECK(line(16) == "model size: 2.443 GB\tcache size: 12.750 GB\thidden size (p): 0.266 GB");
  CHECK(line(32) == "model size: 2.443 GB\tcache size: 25.500 GB\thidden size (p): 0.531 GB");
}

TEST_CASE("a layer of OPT has the values that FlexGen counts") {
  // Four projections, two matrices of the MLP, their biases, and two norms (opt_config.py).
  const double h = 2048;
  const double values = h * (3 * h + 1) + h * (h + 1) + h * (4 * h + 1) + h * 4 * (h + 1) + 4 * h;
  CHECK(layer_weight_bytes(opt_1_3b()) == 2 * values);
  CHECK(outer_weight_bytes(opt_1_3b()) == 2 * opt_1_3b().vocab_size * (h + 1));
}

TEST_CASE("grouped heads, gated MLPs and 4 bits change the sizes as they should") {
  const auto dense = mistral_7b();
  // Mistral 7B has 218.1 million values in each layer.
  CHECK(layer_weight_bytes(dense) == Approx(2 * 218.1e6).epsilon(0.001));
  CHECK(kv_bytes_per_position(dense) == 2 * 2 * 1024);
  const auto packed = in_4_bits(dense);
  CHECK(layer_weight_bytes(packed) / layer_weight_bytes(dense) == Approx(0.28125));
  auto known = dense;
  known.layer_bytes = 5e6;
  known.outer_bytes = 7e6;
  CHECK(sizes_of(known, 1, 1, 1).model_bytes == 32 * 5e6 + 7e6);
}

TEST_CASE("a model counts as FlexGen counts it, or by its packed size where that is another") {
  twill::models::model_spec spec;
  spec.n_layers = 4;
  spec.hidden_size = 64;
  spec.n_heads = 4;
  spec.n_kv_heads = 2;
  spec.head_dim = 16;
  spec.mlp_size = 128;
  spec.vocab_size = 1000;
  const auto shape_of_packed = [&](double layers) {
    twill::models::packed_weights packed;
    packed.layers = static_cast<std::int64_t>(layers);
    packed.tables = 5000;
    packed.small = 70;
    return model_shape(spec, twill::gpu::dtype::f32, packed);
  };
  // Queries and outputs, keys and values, three MLP matrices, two norms: 2 bytes for each value.
  const double layer = 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128 + 2 * 64);
  for (const double near : {0.99, 1.0, 1.01}) {
    const offload_model m = shape_of_packed(4 * near * layer);
    CHECK(layer_weight_bytes(m) == layer);
    CHECK(outer_weight_bytes(m) == 2 * 1000 * 65);
    CHECK(kv_bytes_per_position(m) == 2 * 4 * 32);
  }
  for (const double far : {0.25, 0.97, 1.03, 2.0}) {
    const offload_model m = shape_of_packed(4 * far * layer);
    CHECK(layer_weight_bytes(m) == Approx(far * layer));
    CHECK(outer_weight_bytes(m) == 5070);
  }
}

TEST_CASE("packed KV is small at home and whole where it is attended to") {
  auto m = opt_1_3b();
  offload_policy policy;
  policy.batch_size = 8;
  policy.n_batches = 4;
  policy.kv = {0.5, 0.25};
  const offload_workload work{512, 32, 0};
  const auto load = load_of(work, policy, 16);
  const auto plain = project_memory(m, work, policy, load);
  m.kv_packed_bytes_per_value = 0.5;
  const auto packed = project_memory(m, work, policy, load);
  CHECK(packed.kv.device == Approx(plain.kv.device));
  CHECK(packed.kv.host == Approx(plain.kv.host / 4));
  CHECK(packed.kv.disk == Approx(plain.kv.disk / 4));
  // Each task has both a packed and an unpacked buffer.
  CHECK(packed.buffers.device == Approx(plain.buffers.device * 1.25));
  CHECK(packed.buffers.host == Approx(plain.buffers.host / 4));
}

TEST_CASE("the peak of KV is that of the fullest round, in whole blocks") {
  for (const auto order : {search_order::zigzag, search_order::diagonal})
    for (const int stagger : {1, 3})
      for (const int block : {1, 16}) {
        offload_policy policy;
        policy.order = order;
        policy.n_batches = 4;
        policy.stagger = stagger;
        policy.batch_size = 2;
        const offload_workload work{20, 11, 20};
        const auto load = load_of(work, policy, block);
        CHECK(load.n_batches == 10);

        double most = 0;
        std::map<std::int32_t, double> held;
        schedule_cursor cursor(shape_of(work, policy, 1));
        std::int64_t round = 1;
        const auto tally = [&] {
          double sum = 0;
          for (const auto& one : held)
            sum += one.second;
          most = std::max(most, sum);
          std::erase_if(held, [&](const auto& one) { return one.second < 0; });
        };
        std::vector<std::int32_t> ended;
        while (const auto s = cursor.next()) {
          if (cursor.rounds() != round) {
            tally();
            for (const auto b : ended)
              held.erase(b);
            ended.clear();
            round = cursor.rounds();
          }
          held[s->batch] = (20 + s->token + block - 1) / block * block;
          if (s->token == work.gen_len - 1) ended.push_back(s->batch);
        }
        tally();
        CHECK(load.peak_kv_positions == most);
      }
}

TEST_CASE("a diagonal holds less KV at once, as the paper's appendix says") {
  offload_policy zigzag, diagonal;
  zigzag.n_batches = diagonal.n_batches = 16;
  diagonal.order = search_order::diagonal;
  diagonal.stagger = 8;
  const offload_workload work{128, 128, 16 * 20};
  const double ratio =
      load_of(work, diagonal).peak_kv_positions / load_of(work, zigzag).peak_kv_positions;
  CHECK(ratio == Approx((2.0 * 128 + 128) / (2.0 * 128 + 2 * 128)).epsilon(0.04)); // (2s+n)/(2s+2n)
}

TEST_CASE("rounds keep their sums however they are bundled") {
  offload_policy policy;
  policy.order = search_order::diagonal;
  policy.n_batches = 3;
  policy.stagger = 7;
  const offload_workload work{50, 40, 9};
  const auto load = load_of(work, policy);
  double count = 0, prefills = 0, decodes = 0, context = 0;
  for (const auto& round : load.rounds) {
    count += round.count;
    prefills += round.count * round.n_prefills;
    decodes += round.count * round.n_decodes;
    context += round.count * round.context_positions;
  }
  CHECK(count == load.n_rounds);
  CHECK(prefills == 9);
  CHECK(decodes == 9 * 39);
  double expected = 0;
  for (int t = 1; t < 40; ++t)
    expected += 9 * (50 + t);
  CHECK(context == Approx(expected));
}

TEST_CASE("a projection says what is where") {
  offload_policy policy;
  policy.batch_size = 8;
  policy.n_batches = 4;
  const offload_workload work{512, 32, 0};
  const auto m = opt_1_3b();
  const auto load = load_of(work, policy);
  const auto sizes = sizes_of(m, 512, 31, 32); // the last token is drawn, never stored

  const auto resident = project_memory(m, work, policy, load);
  CHECK(resident.peak().device ==
        Approx(sizes.model_bytes + sizes.cache_bytes + resident.hidden.device));
  CHECK(resident.peak().host == 0);
  CHECK(resident.peak().disk == 0);
  CHECK(resident.buffers.sum() == 0);

  policy.weights = {0.25, 0.25};
  policy.kv = {0, 0.5};
  const auto split = project_memory(m, work, policy, load);
  const double layers = 24 * layer_weight_bytes(m);
  CHECK(split.weights.device == Approx(0.25 * layers + outer_weight_bytes(m)));
  CHECK(split.weights.disk == Approx(0.5 * layers));
  CHECK(split.kv.device == 0);
  CHECK(split.kv.disk == Approx(0.5 * sizes.cache_bytes));
  CHECK(split.buffers.device > 2 * layer_weight_bytes(m));
  CHECK(split.weights.sum() + split.kv.sum() == Approx(sizes.model_bytes + sizes.cache_bytes));

  auto deeper = policy;
  deeper.ring_layers = 4;
  CHECK(project_memory(m, work, deeper, load).buffers.device - split.buffers.device ==
        Approx(2 * layer_weight_bytes(m)));
}
