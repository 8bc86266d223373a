// Streamed weights on a device whose copies end as late as they may: what acquire() does not make
// it wait for is not there yet.
#include <vector>

#include "tests/catch.hpp"
#include "tests/gpu/late_copies.hpp"
#include "tests/models/support/golden_folder.hpp"

using namespace twill::models;
using namespace twill::test;

namespace {

std::vector<logit_row> rows_of(const golden_folder& c, const decoder_options& options) {
  decoder_runner runner(c.spec, *c.weights, options);
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
