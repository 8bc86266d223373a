// A decoder with 16-bit activations between ops, as on a GPU: it gives the same bits as a decoder
// that keeps activations in f32. Values that f16 cannot represent are tested too.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/checkpoint/gguf/file.hpp"
#include "models/decoder/workspace.hpp"
#include "models/families/registry.hpp"
#include "models/memory_estimate/memory_estimate.hpp"
#include "tests/catch.hpp"
#include "tests/gpu/distant/distant_device.hpp"
#include "tests/gpu/portable_ops.hpp"
#include "tests/models/support/decoder_runner.hpp"
#include "tests/models/support/golden_folder.hpp"
#include "tests/models/support/temp_file.hpp"
#include "tests/models/support/tiny_llama.hpp"

using namespace twill::models;
namespace gpu = twill::gpu;
namespace test = twill::test;

namespace {

/// Opens a device with the same kernels as a distant device, but with activations in f32.
std::unique_ptr<gpu::device> open_portable() {
  return gpu::device::open({.kind = "host", .threads = 2, .ops = test::portable_ops()}).value();
}

constexpr gpu::compute_type halves[] = {gpu::compute_type::f16, gpu::compute_type::bf16};

/// Runs a prompt in two chunks, the second one beside another sequence, then three tokens of each.
std::vector<test::logit_row> run_some(test::decoder_runner& runner, const test::id_list& ids) {
  const auto middle = ids.begin() + static_cast<std::ptrdiff_t>(ids.size() / 2);
  std::vector<test::logit_row> all = runner.step({{0, {ids.begin(), middle}, true}});
  const auto add = [&](std::vector<test::logit_row> rows) {
    all.insert(all.end(), rows.begin(), rows.end());
  };
  add(runner.step({{0, {middle, ids.end()}, true}, {1, ids}}));
  for (int i = 0; i < 3; ++i)
    add(runner.step({{1, {ids[static_cast<std::size_t>(i)]}}, {0, {ids.back()}}}));
  return all;
}

} // namespace

TEST_CASE("activations of 16 bits between ops give the logits of activations in f32", "[golden]") {
  if (!test::tests_host()) return;
  const test::distant_transfers transfers;
  for (const char* name :
       {"baichuan2-13b-tiny-gptq-actorder", "chatglm3-tiny-fp16", "llama3-style-tied-bf16",
        "mistral-tiny-awq", "opt-350m-style-fp16", "opt-tiny-fp32", "qwen-v1-ntk-logn-bf16",
        "variants/opt-no-final-norm", "variants/qwen3-biases"})
    DYNAMIC_SECTION(name) {
      const test::golden_folder c(name);
      for (const gpu::compute_type compute : halves) {
        CAPTURE(gpu::name_of(compute));
        const auto options = test::golden_options(compute, gpu::dtype::f16);
        const auto wide = open_portable();
        const auto narrow = test::open_distant({.threads = 2});
        REQUIRE(linear_input_type(wide->info(), compute) == gpu::dtype::f32);
        REQUIRE(linear_input_type(narrow->info(), compute) != gpu::dtype::f32);
        test::decoder_runner in_f32(c.spec, *c.weights, options, *wide);
        test::decoder_runner in_halves(c.spec, *c.weights, options, *narrow);
        const test::id_list& ids = c.prompts.front().ids;
        CHECK(run_some(in_halves, ids) == run_some(in_f32, ids));
      }
    }
}

TEST_CASE("memory with activations of 16 bits is what was estimated") {
  if (!test::tests_host()) return;
  for (const char* name : {"llama-tiny-fp16", "opt-tiny-fp32", "opt-350m-style-fp16"}) {
    CAPTURE(name);
    const test::golden_folder c(name);
    auto dev = test::open_distant({.threads = 2});
    REQUIRE(dev->reserve_scratch(16 << 20).ok());
    const auto bytes_of = [&](const decoder_options& o) {
      const std::int64_t before = dev->memory_used();
      const auto loaded = decoder::load(*dev, c.spec, *c.weights, o, {}).value();
      return dev->memory_used() - before;
    };
    decoder_options shorter = test::golden_options(gpu::compute_type::f16, gpu::dtype::f16);
    shorter.max_step_tokens = shorter.max_logit_rows = 64;
    decoder_options longer = shorter;
    longer.max_step_tokens = 133;
    longer.max_logit_rows = 71;
    CHECK(bytes_of(longer) - bytes_of(shorter) ==
          estimate_step_bytes(dev->info(), c.spec, longer) -
              estimate_step_bytes(dev->info(), c.spec, shorter));
    decoder_options in_f32 = shorter;
    in_f32.compute = gpu::compute_type::f32;
    if (c.spec.gated_mlp)
      CHECK(estimate_step_bytes(dev->info(), c.spec, in_f32) -
                estimate_step_bytes(dev->info(), c.spec, shorter) ==
            2 * 64 * (c.spec.hidden_size + c.spec.mlp_size + 2 * c.spec.q_size()));
  }
}

TEST_CASE("a decoder with activations beyond f16 is finite and right in bf16, and not in f16") {
  if (!test::tests_host()) return;
  test::tiny_llama sizes;
  sizes.q_kind = sizes.k_kind = sizes.v_kind = sizes.gate_kind = sizes.up_kind = sizes.other_kind =
      sizes.embedding_kind = 30; // BF16
  sizes.mlp_norm = 400;          // makes gate and up some hundreds, so that products exceed 65504
  const test::temp_file bytes(test::make_tiny_llama(sizes).build());
  const auto file = gguf::file::open(bytes.path()).value();
  const model_spec spec = families::gguf_spec_of(file->meta(), *file).value();
  const test::distant_transfers transfers;
  const test::id_list ids = {3, 1, 4, 1, 5, 9, 2, 6};
  const auto logits_in = [&](gpu::compute_type compute) {
    auto dev = test::open_distant({.threads = 2});
    test::decoder_runner runner(spec, *file, test::golden_options(compute), *dev);
    return runner.step({{0, ids, true}});
  };
  const auto want = logits_in(gpu::compute_type::f32);
  const auto in_bf16 = logits_in(gpu::compute_type::bf16);
  const auto in_f16 = logits_in(gpu::compute_type::f16);
  for (std::size_t t = 0; t < ids.size(); ++t) {
    CAPTURE(t);
    double largest = 0;
    for (const float y : want[t])
      largest = std::max(largest, std::abs(double{y}));
    CHECK(test::largest_difference(in_bf16[t], want[t]) < 0.03 * largest);
    CHECK(
        std::none_of(in_f16[t].begin(), in_f16[t].end(), [](float y) { return std::isfinite(y); }));
  }
}
