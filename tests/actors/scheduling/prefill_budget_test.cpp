// How many prompt tokens a step may compute beside its decodes, for machines of any speed.
#include <random>

#include "actors/scheduling/prefill_budget.hpp"
#include "tests/catch.hpp"

using twill::actors::prefill_budget;

namespace {

/// A machine on which steps with decodes take equally long, as do the tokens of a prompt.
struct machine {
  double decode_s, prompt_token_s;
  double step(int decodes, int prompt_tokens) const {
    return (decodes > 0 ? decode_s : 0) + prompt_tokens * prompt_token_s;
  }
};

/// The budget after prompts and decodes have alternated for a while.
std::int32_t settled(prefill_budget& budget, const machine& on) {
  budget.note_step(0, 512, on.step(0, 512));
  for (int i = 0; i < 200; ++i) {
    const std::int32_t n = budget.prompt_tokens();
    budget.note_step(3, n, on.step(3, n));
    budget.note_step(3, 0, on.step(3, 0));
  }
  return budget.prompt_tokens();
}

std::int32_t settled(double target_s, const machine& on) {
  prefill_budget budget(512, target_s);
  return settled(budget, on);
}

} // namespace

TEST_CASE("before anything is measured a step takes 128 tokens of prompts, or all it may") {
  CHECK(prefill_budget(512, 0.04).prompt_tokens() == 128);
  CHECK(prefill_budget(64, 0.04).prompt_tokens() == 64);
}

TEST_CASE("prompts get what decodes leave of the target") {
  CHECK(settled(0.04, {0.0101, 0.0006}) == 48); // 29.9 ms are left, enough for 49 tokens
  CHECK(settled(0.08, {0.0101, 0.0006}) == 112);
  CHECK(settled(0.04, {0.005, 0.00005}) == 512);
}

TEST_CASE("prompts get as much time as decodes that leave less than that") {
  CHECK(settled(0.04, {0.0361, 0.0006}) == 48); // 3.9 ms are enough for 6 tokens, 36.1 ms for 60
  CHECK(settled(0.04, {0.25, 0.0038}) == 64);
  CHECK(settled(0.04, {1, 0.03}) == 32);
  CHECK(settled(0.04, {0.1, 1}) == prefill_budget::least);
}

TEST_CASE("the budget follows a machine that changes") {
  prefill_budget budget(512, 0.08);
  CHECK(settled(budget, {0.0101, 0.0006}) == 112);
  CHECK(settled(budget, {0.0101, 0.003}) == 16);
  for (int i = 0; i < 10; ++i) // the share of the target comes back slowly
    settled(budget, {0.0101, 0.0006});
  CHECK(budget.prompt_tokens() == 112);
}

TEST_CASE("a machine whose decodes hide the prompts takes whole steps") {
  prefill_budget budget(2048, 0.04);
  budget.note_step(2, 0, 1.0);
  for (int i = 0; i < 50; ++i)
    budget.note_step(2, budget.prompt_tokens(), 1.0); // prompts do not make a step longer
  CHECK(budget.prompt_tokens() == 2048);
}

TEST_CASE("one step in a hundred takes longer than the target on a machine whose times vary") {
  const double target_s = GENERATE(0.02, 0.04, 0.1);
  const double spread = GENERATE(0.02, 0.1, 0.2); // deviation of the logarithm of a step's time
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> varies(0, spread);
  const machine on{0.006, 0.0002};
  prefill_budget budget(512, target_s);
  budget.note_step(0, 512, on.step(0, 512));
  int too_long = 0;
  constexpr int steps = 20000;
  for (int i = 0; i < steps; ++i) {
    const std::int32_t n = budget.prompt_tokens();
    const double seconds = on.step(3, n) * varies(random);
    too_long += seconds > target_s ? 1 : 0;
    budget.note_step(3, n, seconds);
    budget.note_step(3, 0, on.step(3, 0) * varies(random));
  }
  INFO(target_s << " s, spread " << spread << ": " << too_long << " of " << steps);
  CHECK(too_long <= steps * 0.013);
  CHECK(budget.prompt_tokens() * on.prompt_token_s >= 0.35 * target_s); // prompts still advance
}
