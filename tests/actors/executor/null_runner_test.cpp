// null_runner, the step_runner of the model `dummy:null`, computes no model, but its tokens and
// scores keep to the parameters, bans and masks of each draw.
#include "actors/executor/null_runner.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "models/model.hpp"
#include "tests/catch.hpp"

using namespace twill;
using namespace twill::actors;

TEST_CASE("a model that computes nothing draws and scores as it was asked", "[actors]") {
  CHECK(computes_nothing("dummy:null"));
  CHECK(computes_nothing("dummy:null?step-us=0"));
  CHECK_FALSE(computes_nothing("dummy:nullable"));
  CHECK_FALSE(computes_nothing("dummy:opt"));
  config::options options;
  options.model.path = "dummy:null";
  options.scheduler.max_step_tokens = 77;
  const auto runner = make_null_runners(options)();
  const auto info = runner->load();
  REQUIRE(info.ok());
  CHECK(info.value().max_step_tokens == 77);
  const std::int32_t vocab = info.value().model->spec.vocab_size;
  const float even = -std::log(static_cast<float>(vocab));

  config::sampling_params plain, received;
  plain.logprobs = -1;
  received.logprobs = 3;
  executor_step step;
  step.draws = {{.params = &plain, .seed = 1}, {.params = &plain, .seed = 1}};
  step.draws[1].counter = 1;
  step_samples out;
  REQUIRE(runner->run(step, out).ok());
  REQUIRE(out.tokens.size() == 2);
  CHECK(out.tokens[0] != out.tokens[1]);
  CHECK(out.top_ids.empty());
  const std::int32_t first = out.tokens[0];

  // The first draw again; with its token banned; with that token preferred; with one token allowed.
  const std::vector<gpu::token_bias> bans{{first, -std::numeric_limits<float>::infinity()}};
  const std::vector<gpu::token_bias> likes{{first, 5}};
  std::vector<std::uint32_t> mask((static_cast<std::size_t>(vocab) + 31) / 32);
  mask[2] = 1U << 7;
  int n_awaited = 0;
  step.await_masks = [&] { ++n_awaited; };
  step.draws = {{.params = &plain, .seed = 1},
                {.params = &received, .seed = 1, .biases = bans},
                {.params = &plain, .seed = 1, .biases = likes},
                {.params = &plain, .seed = 1, .mask = mask}};
  step.scores = {{.token = 9, .n_top = 1}, {.token = vocab - 1, .n_top = 2}};
  REQUIRE(runner->run(step, out).ok());
  CHECK(n_awaited == 1);
  REQUIRE(out.tokens.size() == 4);
  CHECK(out.tokens[0] == first);
  CHECK(out.tokens[1] != first);
  CHECK(out.tokens[2] == first);
  CHECK(out.tokens[3] == 2 * 32 + 7);
  CHECK(out.logprobs == std::vector<float>(4, even));
  REQUIRE(out.max_top == 3);
  REQUIRE(out.top_ids.size() == 4 * 3);
  CHECK(out.top_ids[3] == out.tokens[1]);
  CHECK(out.top_logprobs == std::vector<float>(4 * 3, even));
  CHECK(out.score_logprobs == std::vector<float>(2, even));
  CHECK(out.score_max_top == 2);
  CHECK(out.score_top_ids == std::vector<std::int32_t>{9, 10, vocab - 1, 0});
  CHECK(out.score_top_logprobs == std::vector<float>(4, even));

  // A mask of one token selects that token: the one drawn without a mask, and its two neighbours.
  std::fill(mask.begin(), mask.end(), ~std::uint32_t{0});
  step.draws = {{.params = &plain, .seed = 5, .mask = mask}};
  REQUIRE(runner->run(step, out).ok());
  const std::int32_t any = out.tokens[0];
  for (const std::int32_t only : {any, (any + 1) % vocab, (any + vocab - 1) % vocab}) {
    std::fill(mask.begin(), mask.end(), 0);
    mask[static_cast<std::size_t>(only) / 32] = 1U << (only % 32);
    REQUIRE(runner->run(step, out).ok());
    CHECK(out.tokens[0] == only);
  }

  step.scores.clear();
  step.draws = {{.params = &plain, .seed = 1}};
  REQUIRE(runner->run(step, out).ok());
  CHECK(out.score_max_top == 0);
  CHECK(out.score_logprobs.empty());

  // The hidden states of a row are those of its token.
  const auto size = static_cast<std::size_t>(info.value().model->spec.embedding_size);
  step.tokens = {5, 6, 5};
  step.logit_rows = {0, 2, 1, 0};
  step.n_hidden = 3;
  REQUIRE(runner->run(step, out).ok());
  CHECK(out.tokens.size() == 1);
  REQUIRE(static_cast<std::size_t>(out.hidden_size) == size);
  REQUIRE(out.hidden.size() == 3 * size);
  const std::vector<float> of_5(out.hidden.end() - static_cast<std::ptrdiff_t>(size),
                                out.hidden.end());
  CHECK(std::equal(of_5.begin(), of_5.end(), out.hidden.begin()));
  CHECK_FALSE(
      std::equal(of_5.begin(), of_5.end(), out.hidden.begin() + static_cast<std::ptrdiff_t>(size)));
  CHECK(
      std::all_of(out.hidden.begin(), out.hidden.end(), [](float x) { return x >= -1 && x < 1; }));
}
