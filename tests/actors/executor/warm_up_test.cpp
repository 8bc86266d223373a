// The warm-up steps that a GPU runs before requests arrive are steps that a decoder accepts.
#include "actors/executor/warm_up.hpp"

#include <algorithm>
#include <cstdint>

#include "actors/executor/decoder_runner.hpp"
#include "models/model.hpp"
#include "tests/catch.hpp"
#include "tests/gpu/tested_device.hpp"
#include "tests/paths.hpp"

using namespace twill;

TEST_CASE("a decoder runs the steps that warm a device up, and allocates nothing for them",
          "[actors]") {
  config::options options;
  options.device.kind = test::tested_kind();
  options.model.path = test::golden_dir() + "/llama-tiny-fp16";
  options.kv.block_tokens = GENERATE(8, 16);
  const auto make = actors::make_decoder_runners(options, {}, {});
  const auto runner = make();
  const auto loaded = runner->load();
  INFO((loaded.ok() ? "" : loaded.detail()));
  REQUIRE(loaded.ok());
  const actors::runner_info& info = loaded.value();
  config::sampling_params params;
  params.top_k = 40;
  actors::step_samples samples;
  const std::int64_t before = runner->memory_used_bytes();
  for (const std::int32_t sequences : {1, 3})
    for (const std::int32_t rows : {1, 12, 16, 17, 64}) {
      const auto step = actors::warm_up_step(sequences, rows, info.block_tokens, params);
      CHECK(sequences * step.max_blocks <= info.n_blocks);
      const auto ran = runner->run(step, samples);
      INFO((ran.ok() ? "" : ran.detail()));
      REQUIRE(ran.ok());
      REQUIRE(samples.tokens.size() == static_cast<std::size_t>(sequences));
      CHECK(samples.tokens[0] < info.model->spec.vocab_size);
    }
  CHECK(runner->memory_used_bytes() == before);
  CHECK((test::tests_cuda() || info.outside_bytes == 0));
}
