// token_budget limits how many tokens a tenant may use per minute, and tenant_budgets holds the
// budgets of all tenants. Both give the same answers as references that add up every operation
// anew.
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/detail/tenant_budgets.hpp"
#include "actors/detail/token_budget.hpp"
#include "tests/actors/detail/plain_token_budget.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using namespace twill::actors;
using namespace twill::test;
using namespace std::chrono_literals;

namespace {

token_budget::time at(std::int64_t tick) {
  return token_budget::time{} + 1h + tick * 250ms;
}

/// Few values, all small, so that limits are met exactly; rarely one that no bucket can hold.
std::int64_t tokens_of(std::uint32_t n) {
  return n % 64 == 63 ? std::int64_t{1} << 36 : static_cast<std::int64_t>(n % 48);
}
std::int64_t rate_of(std::uint32_t n) {
  return 15 * static_cast<std::int64_t>(1 + n % 4);
}

void compare_waits(const std::optional<std::int32_t>& is, const std::optional<std::int32_t>& twin) {
  demand_equal(is.value_or(-1), twin.value_or(-1), "the seconds to wait");
}

/// One operation on a budget and on its twin.
void apply(const operation& op, token_budget& budget, plain_token_budget& twin, std::int64_t tick) {
  const std::int64_t tokens = tokens_of(op.a);
  switch (op.kind % 6) {
  case 0:
  case 1:
    compare_waits(budget.take(tokens, at(tick)), twin.take(tokens, tick));
    break;
  case 2:
    compare_waits(budget.check(tokens, at(tick)), twin.check(tokens, tick));
    break;
  case 3:
    budget.spend(tokens, at(tick));
    twin.spend(tokens, tick);
    break;
  case 4:
    budget.settle(tokens, tokens_of(op.c));
    twin.settle(tokens, tokens_of(op.c));
    break;
  default:
    budget.set_per_minute(rate_of(op.a), at(tick));
    twin.set_per_minute(rate_of(op.a), tick);
  }
  demand_equal(budget.per_minute(), twin.per_minute(), "the tokens a minute");
  demand_equal(budget.charged(), twin.charged(), "the tokens that are to be settled");
}

/// Usually a little time passes; sometimes none, or the time is an earlier one.
std::int64_t moved(std::int64_t tick, std::uint32_t by) {
  return std::max<std::int64_t>(1, tick + static_cast<std::int64_t>(by % 12) - 2);
}

void play_budget(const operations& sequence) {
  std::int64_t tick = 1;
  const std::int64_t rate = rate_of(sequence.empty() ? 0 : sequence.front().c);
  token_budget budget(rate);
  plain_token_budget twin(rate);
  for (const operation& op : sequence) {
    tick = moved(tick, op.b);
    apply(op, budget, twin, tick);
  }
  // Once all tokens are given back, the bucket is full to its last token.
  budget.settle(std::int64_t{1} << 60, 0);
  compare_waits(budget.check(budget.per_minute(), at(tick)), std::nullopt);
}

struct tenant {
  std::shared_ptr<token_budget> budget;
  std::shared_ptr<plain_token_budget> twin;
};

/// The tenants of a configuration: three names, of which each may be missing or have no limit.
std::vector<twill::config::tenant_options> tenants_of(std::uint32_t n) {
  std::vector<twill::config::tenant_options> out;
  for (const char* name : {"a", "b", "c"}) {
    twill::config::tenant_options one;
    one.name = name;
    one.tokens_per_minute = n % 5 == 4 ? 0 : static_cast<std::int32_t>(rate_of(n));
    if (n % 5 > 0) out.push_back(one);
    n /= 5;
  }
  return out;
}

void play_tenants(const operations& sequence) {
  std::int64_t tick = 1;
  tenant_budgets all(tenants_of(0), at(tick));
  std::map<std::string, tenant> known; // those that have a limit
  std::vector<tenant> held;            // tenants that sessions hold, even after a reload
  for (const operation& op : sequence) {
    tick = moved(tick, op.b);
    if (op.kind % 8 == 7) {
      const auto tenants = tenants_of(op.a);
      all.reload(tenants, at(tick));
      std::map<std::string, tenant> next;
      for (const auto& one : tenants) {
        if (one.tokens_per_minute == 0) continue;
        tenant& now = next[one.name] = known[one.name];
        if (!now.twin)
          now = {all.of(one.name), std::make_shared<plain_token_budget>(one.tokens_per_minute)};
        now.twin->set_per_minute(one.tokens_per_minute, tick);
      }
      known = next;
    } else if (op.kind % 8 == 6) {
      const auto found = known.find(std::string(1, static_cast<char>('a' + op.a % 3)));
      if (found != known.end()) held.push_back(found->second);
    } else if (!held.empty()) {
      const tenant& one = held[op.c % held.size()];
      apply({op.kind % 6 == 5 ? 2 : op.kind, op.a, 0, op.c / 7}, *one.budget, *one.twin, tick);
    }
    for (const char* name : {"a", "b", "c"}) {
      const auto found = known.find(name);
      demand((all.of(name) == nullptr) == (found == known.end()), "a tenant has a limit");
      if (found == known.end()) continue;
      demand(all.of(name) == found->second.budget, "a tenant keeps its budget over a reload");
      demand_equal(all.of(name)->per_minute(), found->second.twin->per_minute(), "its tokens");
    }
    demand(all.of("d") == nullptr, "an unknown tenant has no limit");
  }
}

} // namespace

TEST_CASE("a budget of tokens is that of all that was taken, spent and given back") {
  CHECK(first_failure({.cases = 6000, .long_cases = 300'000}, play_budget) == "");
}

TEST_CASE("tenants keep what they have used, whatever configurations are loaded meanwhile") {
  CHECK(first_failure({.cases = 6000, .long_cases = 300'000}, play_tenants) == "");
}
