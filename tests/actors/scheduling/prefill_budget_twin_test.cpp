// prefill_budget, the number of prompt tokens that a step may take, equals what its rules give for
// the list of all steps since the beginning, computed anew each time. Half of the steps take a
// multiple of half the target time, so that times often lie exactly at a bound.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "actors/scheduling/prefill_budget.hpp"
#include "tests/actors/scheduling/scheduler_fixture.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using twill::actors::prefill_budget;
using namespace scheduling_tests;
using twill::test::demand;
using twill::test::operation;
using twill::test::operations;

namespace {

constexpr double target_s = 1.0 / 32;

struct step {
  std::int32_t decodes = 0, prompt_tokens = 0;
  double seconds = 0;
};

step any_step(const operation& o) {
  choices kinds(o.a), sizes(o.b), times(o.c);
  step s;
  s.decodes = kinds.between(0, 2);
  s.prompt_tokens = kinds.one_in(3)   ? 0
                    : kinds.one_in(3) ? sizes.between(1, 17)
                                      : sizes.between(15, 600);
  s.seconds = times.one_in(2) ? times.between(0, 5) * target_s / 2
                              : times.between(1, 2000) * target_s / 1500;
  if (s.decodes == 0 && s.prompt_tokens == 0) s.decodes = 1;
  return s;
}

/// An average in which each value after the first counts for an eighth.
double average(const std::vector<double>& values) {
  double mean = 0;
  for (const double value : values)
    mean = mean == 0 ? value : mean + (value - mean) / 8;
  return mean;
}

/// Tokens that the rules allow, not rounded; 0: no prompt was timed yet.
double tokens_after(const std::vector<step>& steps) {
  std::vector<double> decode_times, token_times;
  double share = 1;
  for (const step& s : steps) {
    const double decodes_s = average(decode_times);
    if (s.prompt_tokens == 0) {
      decode_times.push_back(s.seconds);
      continue;
    }
    if (s.decodes > 0 && decodes_s < target_s) {
      share *= s.seconds > target_s ? 0.95 : 1 + 0.05 / 99;
      share = std::min(std::max(share, 0.5), 1.0);
    }
    if (s.prompt_tokens < 16) continue;
    const double added = s.decodes > 0 ? s.seconds - decodes_s : s.seconds;
    token_times.push_back(std::max(added, 1e-9) / s.prompt_tokens);
  }
  if (token_times.empty()) return 0;
  const double decodes_s = average(decode_times);
  return std::max(share * target_s - decodes_s, decodes_s) / average(token_times);
}

/// Rounds down to a multiple of 16 that is at least 16; `most` is a bound in any case.
std::int32_t rounded(double tokens, std::int32_t most) {
  const double whole = std::floor(std::min(tokens / 16, 1e9)) * 16;
  return static_cast<std::int32_t>(std::min<double>(std::max(whole, 16.0), most));
}

} // namespace

TEST_CASE("the budget of prompt tokens is what the rules say of all steps", "[scheduling]") {
  const auto failure = twill::test::first_failure({2000, 50'000, 80}, [](const operations& ops) {
    const std::int32_t most = ops.empty() ? 512 : choices(ops.front().a).between(1, 600);
    prefill_budget budget(most, target_s);
    std::vector<step> steps;
    for (const operation& o : ops) {
      const step s = any_step(o);
      steps.push_back(s);
      budget.note_step(s.decodes, s.prompt_tokens, s.seconds);
      const double tokens = tokens_after(steps);
      const std::int32_t is = budget.prompt_tokens();
      if (tokens == 0) {
        twill::test::demand_equal(is, std::min(128, most), "the budget before prompts were timed");
        continue;
      }
      // Both results must agree, up to an error of rounding in the last bits.
      const std::int32_t low = rounded(tokens * (1 - 1e-12), most);
      const std::int32_t high = rounded(tokens * (1 + 1e-12), most);
      demand(low <= is && is <= high, "the budget is " + std::to_string(is) + ", expected " +
                                          std::to_string(low) + " to " + std::to_string(high));
    }
  });
  CHECK(failure == "");
}
