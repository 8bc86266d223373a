// Every family's folder against logits and tokens of implementations that share no code with twill.
#include <string>

#include "tests/catch.hpp"
#include "tests/models/support/golden_folder.hpp"

using namespace twill::models;
using namespace twill::test;
namespace gpu = twill::gpu;

TEST_CASE("each family's folder gives the reference's logits and greedy tokens", "[golden]") {
  auto names = golden_folders();
  names.insert(names.end(), golden_variants().begin(), golden_variants().end());
  for (const std::string& name : names) {
    CAPTURE(name);
    const golden_folder c(name);
    const double tolerance = c.tolerance("float32_compute_logit_abs");
    decoder_runner runner(c.spec, *c.weights, golden_options());
    for (std::size_t p = 0; p < c.prompts.size(); ++p) {
      CAPTURE(p);
      const golden_prompt& prompt = c.prompts[p];
      const auto rows = runner.step({{0, prompt.ids, true}});
      REQUIRE(rows.size() == prompt.ids.size());
      CHECK(largest_difference(rows.back(), prompt.last_logits) < tolerance);
      double worst = 0;
      for (std::size_t t = 0; t < rows.size(); ++t)
        for (const auto& [id, logit] : prompt.top[t])
          worst = std::max(worst, std::abs(double{rows[t][static_cast<std::size_t>(id)]} - logit));
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
  }
}
