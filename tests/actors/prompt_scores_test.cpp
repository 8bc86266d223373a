// Scores of prompts (log-probabilities of their tokens) from golden folders, compared with
// log-probabilities that the test computes in double from a decoder's logits, and with the
// likeliest tokens of the reference implementation.
#include <cmath>
#include <string>
#include <vector>

#include "actors/engine.hpp"
#include "tests/actors/engine_fixture.hpp"
#include "tests/catch.hpp"
#include "tests/models/support/golden_folder.hpp"
#include "tests/paths.hpp"
#include "tests/support/worse.hpp"

using namespace twill;
using scripted::recorder;

namespace {

double logprob_of(const test::logit_row& logits, std::int32_t id) {
  double largest = -INFINITY, sum = 0;
  for (const float x : logits)
    largest = std::max(largest, double{x});
  for (const float x : logits)
    sum += std::exp(double{x} - largest);
  return double{logits[static_cast<std::size_t>(id)]} - largest - std::log(sum);
}

} // namespace

TEST_CASE("scores of prompts are those of a direct computation in f32", "[actors]") {
  for (const std::string name : {"llama-tiny-fp16", "opt-tiny-fp32"}) {
    CAPTURE(name);
    const test::golden_folder c(name);
    std::vector<std::vector<test::logit_row>> direct;
    {
      test::decoder_runner runner(c.spec, *c.weights, test::golden_options());
      for (const auto& prompt : c.prompts) {
        direct.push_back(runner.step({{0, prompt.ids, true}}));
        runner.release(0);
      }
    }
    config::options options;
    options.model.path = test::golden_dir() + "/" + name;
    options.model.compute = "f32";
    options.scheduler.max_step_tokens = 16; // prompts are cut
    options.scheduler.max_running = 8;
    options.kv.memory_bytes = 16 * mib;
    const auto engine = actors::start_engine(options);
    auto& port = engine->port();
    REQUIRE(scripted::eventually([&] { return port.state() == actors::engine_state::ready; }));
    std::vector<recorder> all(2 * c.prompts.size()); // the second time from a full cache
    for (std::size_t i = 0; i < all.size(); ++i) {
      actors::request r;
      r.prompt = c.prompts[i % c.prompts.size()].ids;
      r.sampling.max_tokens = i % 2 == 0 ? 0 : 3;
      r.prompt_logprobs = 5;
      port.submit(r, all[i].callback());
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      CAPTURE(i);
      const std::size_t p = i % c.prompts.size();
      const auto& prompt = c.prompts[p];
      REQUIRE(all[i].wait_over());
      REQUIRE_FALSE(all[i].error());
      const auto scores = all[i].scores();
      REQUIRE(scores.size() == prompt.ids.size());
      double worst = 0;
      for (std::size_t t = 1; t < scores.size(); ++t) {
        const auto& logits = direct[p][t - 1];
        worst = twill::test::worse(
            worst, std::abs(double{scores[t].chosen.logprob} - logprob_of(logits, prompt.ids[t])));
        REQUIRE(scores[t].top.size() == 5);
        for (std::size_t k = 0; k < 5; ++k) {
          CHECK(scores[t].top[k].id == prompt.top[t - 1][k].first);
          worst = twill::test::worse(worst, std::abs(double{scores[t].top[k].logprob} -
                                                     logprob_of(logits, scores[t].top[k].id)));
        }
      }
      CHECK(worst < 1e-4);
    }
  }
}
