// Every family's golden folder, compared with logits and tokens of implementations that share no
// code with twill. Each folder is a section of Catch2, so that a GPU can compute each in a process
// of its own (with the option -c NAME).
#include <memory>
#include <string>

#include "tests/catch.hpp"
#include "tests/gpu/distant/distant_device.hpp"
#include "tests/models/support/golden_folder.hpp"
#include "tests/support/worse.hpp"

using namespace twill::models;
using namespace twill::test;
namespace gpu = twill::gpu;

namespace {

/// Checks the logits that a runner computes for a golden prompt, and its greedy tokens.
void check_prompt(decoder_runner& runner, const golden_prompt& prompt, double tolerance) {
  const auto rows = runner.step({{0, prompt.ids, true}});
  REQUIRE(rows.size() == prompt.ids.size());
  CHECK(largest_difference(rows.back(), prompt.last_logits) < tolerance);
  double worst = 0;
  for (std::size_t t = 0; t < rows.size(); ++t)
    for (const auto& [id, logit] : prompt.top[t])
      worst = twill::test::worse(worst,
                                 std::abs(double{rows[t][static_cast<std::size_t>(id)]} - logit));
  CHECK(worst < tolerance);
  id_list greedy;
  logit_row logits = rows.back();
  while (greedy.size() < prompt.greedy.size()) {
    greedy.push_back(argmax(logits));
    logits = runner.step({{0, {greedy.back()}}}).front();
  }
  CHECK(greedy == prompt.greedy);
  CHECK(largest_difference(logits, prompt.final_logits) < tolerance);
  runner.release(0);
}

} // namespace

TEST_CASE("each family's folder gives the reference's logits and greedy tokens", "[golden]") {
  auto names = golden_folders();
  names.insert(names.end(), golden_variants().begin(), golden_variants().end());
  for (const std::string& name : names)
    DYNAMIC_SECTION(name) {
      const golden_folder c(name);
      decoder_runner runner(c.spec, *c.weights, golden_options());
      for (const golden_prompt& prompt : c.prompts)
        check_prompt(runner, prompt, c.tolerance("float32_compute_logit_abs"));
    }
}

TEST_CASE("a decoder reaches device memory by ops and copies alone") {
  if (!tests_host()) return;
  const distant_transfers transfers;
  for (const char* name : {"baichuan2-13b-tiny-gptq-actorder", "chatglm3-tiny-fp16",
                           "mistral-tiny-awq", "opt-350m-style-fp16", "qwen-v1-ntk-logn-bf16"})
    DYNAMIC_SECTION(name) {
      const golden_folder c(name);
      auto dev = open_distant({.threads = 2});
      decoder_runner runner(c.spec, *c.weights, golden_options(), *dev);
      check_prompt(runner, c.prompts.front(), c.tolerance("float32_compute_logit_abs"));
    }
}

TEST_CASE("two models side by side give the tokens of each alone, also beside a third that leaves",
          "[golden]") {
  const golden_folder first("llama-tiny-fp16"), second("opt-tiny-fp32");
  const auto a = open_tested({.threads = 2}), b = open_tested({.threads = 2});
  decoder_runner one(first.spec, *first.weights, golden_options(), *a);
  decoder_runner other(second.spec, *second.weights, golden_options(), *b);
  const golden_prompt &p = first.prompts.front(), &q = second.prompts.front();
  logit_row from_one = one.step({{0, p.ids}}).front();
  logit_row from_other = other.step({{0, q.ids}}).front();
  id_list greedy_one, greedy_other;
  while (greedy_one.size() < p.greedy.size() && greedy_other.size() < q.greedy.size()) {
    greedy_one.push_back(argmax(from_one));
    greedy_other.push_back(argmax(from_other));
    open_tested({.threads = 2})->fence();
    from_one = one.step({{0, {greedy_one.back()}}}).front();
    from_other = other.step({{0, {greedy_other.back()}}}).front();
  }
  CHECK(std::equal(greedy_one.begin(), greedy_one.end(), p.greedy.begin()));
  CHECK(std::equal(greedy_other.begin(), greedy_other.end(), q.greedy.begin()));
}
