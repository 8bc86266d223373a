#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu/copy_stream.hpp"
#include "gpu/sampling/sample.hpp"
#include "models/checkpoint/gguf/file.hpp"
#include "models/families/registry.hpp"
#include "models/memory_estimate/memory_estimate.hpp"
#include "tests/catch.hpp"
#include "tests/gpu/portable_ops.hpp"
#include "tests/gpu/tested_device.hpp"
#include "tests/models/support/decoder_runner.hpp"
#include "tests/models/support/golden_folder.hpp"
#include "tests/models/support/naive_llama.hpp"
#include "tests/models/support/temp_file.hpp"
#include "tests/models/support/tiny_llama.hpp"

using namespace twill::models;
namespace gpu = twill::gpu;
namespace test = twill::test;
using test::tiny_llama;

namespace {

decoder_options options_for_tests() {
  decoder_options o;
  o.n_blocks = 16;
  o.block_tokens = 8;
  o.max_step_tokens = 64;
  o.max_sequences = 4;
  o.max_logit_rows = 64;
  return o;
}

struct opened_model {
  explicit opened_model(const test::gguf_writer& w) {
    const test::temp_file bytes(w.build());
    auto opened = gguf::file::open(bytes.path());
    if (!opened.ok()) throw std::runtime_error(opened.detail());
    file = opened.value();
    auto read = families::gguf_spec_of(file->meta(), *file);
    if (!read.ok()) throw std::runtime_error(read.detail());
    spec = read.value();
  }
  twill::result<std::unique_ptr<decoder>, errc> load() const {
    return decoder::load(test::shared_device(), spec, *file, options_for_tests(), {});
  }

  std::shared_ptr<const gguf::file> file;
  model_spec spec;
};

void check_against_naive(const opened_model& m) {
  const test::id_list ids = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4};
  test::decoder_runner runner(m.spec, *m.file, options_for_tests());
  const auto rows = runner.step({{0, ids, true}});
  const auto expected = test::naive_llama(m.spec, *m.file).forward(ids);
  REQUIRE(rows.size() == expected.size());
  double largest = 0;
  for (std::size_t t = 0; t < rows.size(); ++t)
    for (std::size_t i = 0; i < rows[t].size(); ++i) {
      const double d = std::abs(rows[t][i] - expected[t][i]) / (1 + std::abs(expected[t][i]));
      largest = test::worse(largest, d);
    }
  CHECK(largest < 2e-4);
}

void check_load_fails(const opened_model& m, errc code, const std::string& words) {
  const auto loaded = m.load();
  REQUIRE_FALSE(loaded.ok());
  CAPTURE(loaded.detail());
  CHECK(loaded.code() == code);
  CHECK(loaded.detail().find(words) != std::string::npos);
}

} // namespace

TEST_CASE("the decoder agrees with a plain forward pass whatever kinds the weights have") {
  tiny_llama m;
  SECTION("all of one kind, fused, tied") {}
  SECTION("untied head") {
    m.tied = false;
  }
  SECTION("Q, K and V of three kinds") {
    m.q_kind = 2;
    m.k_kind = 8;
    m.v_kind = 1;
  }
  SECTION("gate and up of two kinds, dense embedding") {
    m.gate_kind = 0;
    m.up_kind = 30;
    m.embedding_kind = 1;
  }
  SECTION("biases on every projection, fused and not") {
    m.biases = true;
    m.v_kind = 8;
  }
  SECTION("all dense") {
    m.q_kind = m.k_kind = m.v_kind = m.gate_kind = m.up_kind = m.other_kind = m.embedding_kind = 0;
    m.tied = false;
  }
  check_against_naive(opened_model(test::make_tiny_llama(m)));
}

TEST_CASE("rotary scaling, partial rotation, frequency factors and windows follow the metadata") {
  test::gguf_writer w = test::make_tiny_llama({});
  SECTION("linear scaling") {
    w.add_string("llama.rope.scaling.type", "linear");
    w.add_f32("llama.rope.scaling.factor", 4.0f);
    const opened_model m(w);
    CHECK(m.spec.rope.inv_freq[0] == 0.25f);
    check_against_naive(m);
  }
  SECTION("the older key of linear scaling") {
    w.add_f32("llama.rope.scale_linear", 2.0f);
    CHECK(opened_model(w).spec.rope.inv_freq[0] == 0.5f);
  }
  SECTION("partial rotation") {
    w.add_u32("llama.rope.dimension_count", 8);
    const opened_model m(w);
    CHECK(m.spec.rope.rotary_dim == 8);
    check_against_naive(m);
  }
  SECTION("frequency factors") {
    w.add_tensor("rope_freqs.weight", {8}, 0, test::tiny_vector(8, 2.0f));
    const opened_model m(w);
    CHECK(m.spec.rope.inv_freq[0] == 0.5f);
    check_against_naive(m);
  }
  SECTION("a sliding window") {
    w.add_u32("llama.attention.sliding_window", 5);
    check_against_naive(opened_model(w));
  }
}

TEST_CASE("a step without wanted rows stores KV and returns no logits") {
  const opened_model m(test::make_tiny_llama({}));
  auto loaded = m.load();
  REQUIRE(loaded.ok());
  const std::vector<std::int32_t> tokens = {1, 2}, positions = {0, 1}, first = {0, 2},
                                  lengths = {2}, table = {0};
  CHECK(loaded.value()->forward({tokens, positions, first, lengths, table, 1, {}}).value().rows() ==
        0);
  CHECK(loaded.value()
            ->forward({{}, {}, std::vector<std::int32_t>{0}, {}, {}, 0, {}})
            .value()
            .rows() == 0);
}

TEST_CASE("loading reports progress up to 1, and the memory it takes") {
  const opened_model m(test::make_tiny_llama({}));
  std::vector<double> heard;
  const std::int64_t before = test::shared_device().memory_used();
  {
    auto loaded = decoder::load(test::shared_device(), m.spec, *m.file, options_for_tests(),
                                [&](double share) { heard.push_back(share); });
    REQUIRE(loaded.ok());
    CHECK(loaded.value()->weight_bytes() > 0);
    CHECK(test::shared_device().memory_used() >= before + loaded.value()->weight_bytes());
  }
  CHECK(test::shared_device().memory_used() == before);
  CHECK(heard.size() == 3);
  CHECK(std::is_sorted(heard.begin(), heard.end()));
  CHECK(heard.back() == Approx(1.0));
  // 2 layers, keys and values, 2 heads of 16, 8 tokens, f32
  CHECK(decoder::block_bytes(m.spec, options_for_tests()) == 2 * 2 * 2 * 16 * 8 * 4);
}

TEST_CASE("what a longer step and its payload add to a decoder's memory is what was estimated") {
  for (const char* name : {"llama-tiny-fp16", "opt-tiny-fp32", "chatglm3-tiny-fp16"}) {
    CAPTURE(name);
    const test::golden_folder c(name);
    auto dev = test::open_tested({.threads = 2});
    REQUIRE(dev->reserve_scratch(16 << 20).ok());
    const auto bytes_of = [&](const decoder_options& o) {
      const std::int64_t before = dev->memory_used();
      const auto loaded = decoder::load(*dev, c.spec, *c.weights, o, {}).value();
      return dev->memory_used() - before;
    };
    const decoder_options shorter = options_for_tests();
    decoder_options longer = shorter;
    longer.max_step_tokens = 133;
    longer.max_sequences = 9;
    longer.max_logit_rows = 71;
    longer.carried_bytes = 5000;
    CHECK(bytes_of(longer) - bytes_of(shorter) ==
          estimate_step_bytes(dev->info(), c.spec, longer) -
              estimate_step_bytes(dev->info(), c.spec, shorter));
  }
}

TEST_CASE("loading into a device that is too small is refused with the numbers") {
  const opened_model m(test::make_tiny_llama({}));
  auto dev = test::open_tested({.memory_bytes = 4 << 20});
  decoder_options o = options_for_tests();
  o.n_blocks = 1 << 20;
  const auto loaded = decoder::load(*dev, m.spec, *m.file, o, {});
  REQUIRE_FALSE(loaded.ok());
  CHECK(loaded.code() == errc::out_of_memory);
  CHECK(loaded.detail().find("KV blocks: the allocation must fit") == 0);
  CHECK(dev->memory_used() == 0);
}

TEST_CASE("weights that do not fit the spec are refused by name, expected and found") {
  const tiny_llama sizes;
  SECTION("a missing tensor") {
    test::gguf_writer w;
    test::add_tiny_metadata(w, sizes);
    std::mt19937 random(1);
    w.add_tensor("token_embd.weight", {50, 64}, 8, test::random_matrix(random, 8, 50 * 64));
    check_load_fails(opened_model(w), errc::missing_tensor,
                     "`output_norm.weight` is not in the file");
  }
  SECTION("another shape") {
    opened_model m(test::make_tiny_llama(sizes));
    m.spec.mlp_size = 128;
    check_load_fails(m, errc::bad_tensor,
                     "`blk.0.ffn_gate.weight` must have shape (128, 64), got (96, 64)");
  }
  SECTION("a norm that is not finite") {
    tiny_llama broken;
    broken.final_norm = std::nanf("");
    check_load_fails(opened_model(test::make_tiny_llama(broken)), errc::bad_tensor,
                     "`output_norm.weight` must be finite");
  }
  SECTION("a tensor that has no role") {
    test::gguf_writer w = test::make_tiny_llama(sizes);
    w.add_tensor("blk.0.attn_q_norm.weight", {16}, 0, test::tiny_vector(16, 1.0f));
    check_load_fails(opened_model(w), errc::unsupported,
                     "`blk.0.attn_q_norm.weight` has no role in a llama model");
  }
  SECTION("a kind that twill does not read") {
    tiny_llama other;
    other.embedding_kind = 20;
    check_load_fails(opened_model(test::make_tiny_llama(other)), errc::unsupported,
                     "`token_embd.weight` has kind IQ4_NL");
  }
}

namespace {

/// Greedy decoding of two prompts in one batch. With `on_device`, each step takes its tokens from
/// the draws of the previous step on the device, and the host reads them only at the end.
std::vector<std::int32_t> decode_two(const opened_model& m, const gpu::detail::op_backends* ops,
                                     bool on_device) {
  constexpr std::int32_t steps = 9;
  auto dev = gpu::device::open({.kind = "host", .threads = 2, .memory_bytes = 1 << 28, .ops = ops})
                 .value();
  auto loaded = decoder::load(*dev, m.spec, *m.file, options_for_tests(), {}).value();
  const gpu::buffer drawn = dev->allocate(2 * sizeof(std::int32_t), "draws").value();
  const auto tokens_of_step = gpu::host_buffer::allocate(steps * 8, "draws");
  auto* tokens = static_cast<std::int32_t*>(drawn.data());
  auto* seen = reinterpret_cast<std::int32_t*>(tokens_of_step.value().data());
  step_batch step;
  step.tokens = {1, 2, 3, 4};
  step.positions = {0, 1, 2, 0};
  step.first_token = {0, 3, 4};
  step.kv_lengths = {3, 1};
  step.block_table = {7, 2, 9, 5};
  step.max_blocks = 2;
  step.logit_rows = {3, 2}; // draw 0 is the second sequence's
  step.prompt_lengths = {3, 1};
  const gpu::exchange_counts before = dev->exchanges();
  for (std::int32_t s = 0; s < steps; ++s) {
    step_payload payload;
    if (!step.fed_from.empty()) payload.drawn = tokens;
    const auto logits = loaded->forward(step, payload).value();
    gpu::argmax(*dev, logits, tokens);
    dev->enqueue_download(seen + 2 * s, tokens, 8);
    const std::int32_t first = s == 0 ? 1 : 0, second = 1 - first; // which draw each sequence has
    step.tokens = {0, 0};
    if (on_device) {
      step.fed_from = {first, second};
    } else {
      dev->fence();
      step.tokens = {seen[2 * s + first], seen[2 * s + second]};
    }
    step.positions = {3 + s, 1 + s};
    step.first_token = {0, 1, 2};
    step.kv_lengths = {4 + s, 2 + s};
    step.logit_rows = {0, 1};
  }
  CHECK(dev->exchanges().uploads - before.uploads == steps);
  CHECK(dev->exchanges().downloads - before.downloads == steps);
  CHECK(dev->exchanges().waits - before.waits == (on_device ? 0 : steps));
  dev->fence();
  return {seen, seen + 2 * steps};
}

} // namespace

TEST_CASE("a step is one upload and no wait, and takes its tokens from the draws before it") {
  tiny_llama shape;
  const opened_model m(test::make_tiny_llama(shape));
  const auto tokens = decode_two(m, nullptr, false);
  CHECK(decode_two(m, nullptr, true) == tokens);
  CHECK(decode_two(m, test::portable_ops(), true) == decode_two(m, test::portable_ops(), false));
}
