// How many tokens of prompts decodes bear beside them, for machines of any speed.
#include "actors/scheduling/prefill_budget.hpp"
#include "tests/catch.hpp"

using twill::actors::prefill_budget;

namespace {

/// A machine that takes as long for each decode, and for each token of a prompt.
struct machine {
  double decode_s, prompt_token_s;
  double step(int decodes, int prompt_tokens) const {
    return (decodes > 0 ? decode_s : 0) + prompt_tokens * prompt_token_s;
  }
};

/// The allowance after prompts and decodes have come and gone for a while.
std::int32_t settled(prefill_budget& budget, const machine& on) {
  budget.note_step(0, 512, on.step(0, 512));
  for (int i = 0; i < 200; ++i) {
    const std::int32_t n = budget.prompt_tokens();
    budget.note_step(3, n, on.step(3, n));
    budget.note_step(3, 0, on.step(3, 0));
  }
  return budget.prompt_tokens();
}

} // namespace

TEST_CASE("before anything is measured a step takes 128 tokens of prompts, or all it may") {
  CHECK(prefill_budget(512).prompt_tokens() == 128);
  CHECK(prefill_budget(64).prompt_tokens() == 64);
}

TEST_CASE("a fast machine reads as much as a reader does not notice") {
  prefill_budget budget(512);
  CHECK(settled(budget, {0.010, 0.0006}) == 112); // 75 ms are 125 tokens
  prefill_budget faster(512);
  CHECK(settled(faster, {0.005, 0.00005}) == 512);
}

TEST_CASE("a slow machine stretches its steps to three times, and goes on with prompts") {
  prefill_budget budget(512);
  CHECK(settled(budget, {0.25, 0.028}) == 16); // half a second more: 17 tokens
  prefill_budget slower(512);
  CHECK(settled(slower, {0.1, 1}) == prefill_budget::least);
  prefill_budget long_decodes(512);
  CHECK(settled(long_decodes, {1, 0.03}) == 64);
}

TEST_CASE("the allowance follows a machine that changes") {
  prefill_budget budget(512);
  settled(budget, {0.010, 0.0006});
  CHECK(settled(budget, {0.010, 0.003}) == 16);
  CHECK(settled(budget, {0.010, 0.0006}) == 112);
}

TEST_CASE("a machine whose decodes hide the prompts takes whole steps") {
  prefill_budget budget(2048);
  budget.note_step(2, 0, 1.0);
  for (int i = 0; i < 50; ++i)
    budget.note_step(2, budget.prompt_tokens(), 1.0); // what is waited for is the same
  CHECK(budget.prompt_tokens() == 2048);
}
