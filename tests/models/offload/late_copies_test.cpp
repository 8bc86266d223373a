// Streamed weights on devices whose copies end as late as they may. acquire() must wait until the
// weights of a layer are on the device. If it did not, they would not be there yet, and logits
// would be wrong.
#include <vector>

#include "tests/catch.hpp"
#include "tests/gpu/distant/distant_device.hpp"
#include "tests/gpu/late_copies.hpp"
#include "tests/models/support/golden_folder.hpp"

using namespace twill::models;
using namespace twill::test;
namespace gpu = twill::gpu;

namespace {

std::vector<logit_row> rows_of(const golden_folder& c, const decoder_options& options,
                               gpu::device& dev = shared_device()) {
  decoder_runner runner(c.spec, *c.weights, options, dev);
  std::vector<logit_row> rows = runner.step({{0, c.prompts[0].ids, true}});
  for (int i = 0; i < 4; ++i)
    rows.push_back(runner.step({{0, {argmax(rows.back())}}}).front());
  return rows;
}

} // namespace

TEST_CASE("the device waits for weights that are still on their way", "[offload]") {
  const golden_folder c("llama-tiny-fp16");
  auto options = golden_options();
  const auto resident = rows_of(c, options);
  for (const std::int32_t on_host : {100, 50}) {
    for (const bool halves : {false, true}) {
      CAPTURE(on_host, halves);
      options.offload.weights = {0, on_host};
      options.offload.ring_layers = 2;
      options.offload.io_threads = 3;
      options.offload.sep_layer = halves;
      const late_copies copies;
      CHECK(rows_of(c, options) == resident);
      CHECK(copies.ended_for_the_device() > 0);
    }
  }
}

TEST_CASE("a device whose ops are late too gets the weights of the layer that it computes",
          "[offload]") {
  if (!tests_host()) return;
  const distant_transfers transfers;
  const auto dev = open_distant({.threads = 2});
  for (const char* name : {"llama-tiny-fp16", "qwen-v1-ntk-logn-bf16"}) {
    const golden_folder c(name);
    auto options = golden_options();
    const auto resident = rows_of(c, options, *dev);
    for (const auto homes : {offload::shares{0, 100}, offload::shares{30, 40}}) {
      CAPTURE(name, homes.device, homes.host);
      options.offload.weights = homes;
      options.offload.ring_layers = 2;
      options.offload.io_threads = 2;
      options.offload.sep_layer = homes.device > 0;
      CHECK(rows_of(c, options, *dev) == resident);
    }
  }
}
