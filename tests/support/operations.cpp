#include "tests/support/operations.hpp"

#include <cstdlib>
#include <sstream>
#include <string>
#include <unordered_map>

#include <rapidcheck.h>

namespace twill::test {

namespace {

rc::Gen<std::uint32_t> any_number() {
  // RapidCheck widens the range with the size of the test case; resize() gives all of it.
  return rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::uint32_t>(0, 1U << 20));
}

rc::Gen<operation> any_operation() {
  return rc::gen::build<operation>(
      rc::gen::set(&operation::kind, any_number()), rc::gen::set(&operation::a, any_number()),
      rc::gen::set(&operation::b, any_number()), rc::gen::set(&operation::c, any_number()));
}

/// Replaces RapidCheck's own listener, which prints a seed that does not repeat these sequences.
struct silent_listener final : rc::detail::TestListener {
  void onTestCaseFinished(const rc::detail::CaseDescription&) override {}
  void onShrinkTried(const rc::detail::CaseDescription&, bool) override {}
  void onTestFinished(const rc::detail::TestMetadata&, const rc::detail::TestResult&) override {}
};

std::string written(const operations& sequence) {
  std::ostringstream out;
  for (const operation& o : sequence)
    out << " {" << o.kind << ", " << o.a << ", " << o.b << ", " << o.c << "}";
  return out.str();
}

} // namespace

std::string first_failure(const sequences& which,
                          const std::function<void(const operations&)>& property) {
  const char* seed = std::getenv("TWILL_SEED");
  rc::detail::TestParams params;
  params.seed = seed != nullptr ? std::strtoull(seed, nullptr, 10) : 2026;
  params.maxSuccess =
      std::getenv("TWILL_LONG") != nullptr ? which.long_cases : cases_here(which.cases);
  params.maxSize = which.most_operations;
  // Each sequence that fails is shrunk further, so that the last one that failed is the shortest.
  silent_listener listener;
  operations shortest;
  std::string broke;
  const auto result = rc::detail::checkTestable(
      [&] {
        const operations sequence = *rc::gen::container<operations>(any_operation());
        try {
          property(sequence);
        } catch (const broken& e) {
          shortest = sequence;
          broke = e.what();
          throw;
        }
      },
      rc::detail::TestMetadata{}, params, listener,
      std::unordered_map<std::string, rc::detail::Reproduce>{});
  if (result.is<rc::detail::SuccessResult>()) return {};
  std::ostringstream out;
  if (broke.empty())
    rc::detail::printResultMessage(result, out);
  else
    out << broke << "\nby the operations {kind, a, b, c}" << written(shortest);
  out << "\nTWILL_SEED=" << params.seed;
  return out.str();
}

} // namespace twill::test
