// The answer to a request does not depend on the circumstances. Whichever requests run beside it,
// however it is split into steps, preempted, interrupted or continued, a request gets the same
// tokens, scores, texts and finish reasons as when it runs alone; and when it runs alone, it gets
// what a plain reference computes from its definition.
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "config/base/log.hpp"
#include "tests/actors/meaning/asked.hpp"
#include "tests/actors/meaning/reference.hpp"
#include "tests/actors/meaning/small_models.hpp"
#include "tests/actors/meaning/world.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::test;

namespace {

/// The events of requests that run alone, checked against the reference.
class undisturbed {
public:
  explicit undisturbed(const small_model& model)
      : model_(model), engine_(model), reference_(model) {}

  const small_model& model() const { return model_; }

  const world_request& of(const operation& numbers) {
    const auto key = std::tuple(numbers.a, numbers.b, numbers.c);
    if (const auto known = made_.find(key); known != made_.end()) return known->second;
    world_request one;
    one.asked = request_of(numbers, model_, [this](const actors::request& simpler) {
      std::vector<std::int32_t> ids;
      for (const auto& e : engine_.run(simpler))
        if (e.choice == 0)
          for (const auto& token : e.tokens)
            ids.push_back(token.chosen.id);
      return ids;
    });
    one.expected = engine_.run(one.asked);
    reference_.check(one.asked, one.expected);
    return made_.emplace(key, std::move(one)).first->second;
  }

private:
  const small_model& model_;
  quiet_engine engine_;
  reference reference_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, world_request> made_;
};

using clock_type = std::chrono::steady_clock;
/// How long a sequence that fails is made shorter.
constexpr auto time_to_shorten = std::chrono::seconds(20);

bool takes_long() {
  return std::getenv("TWILL_LONG") != nullptr;
}

/// Writes bytes that are not text as their numbers.
std::string printable(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const int byte = static_cast<unsigned char>(c);
    out += byte < 127 && (byte >= 32 || c == '\n') ? std::string(1, c)
                                                   : "<" + std::to_string(byte) + ">";
  }
  return out;
}

/// Runs the requests of a sequence together in the world of its other operations.
void run_sequence(undisturbed& alone, undisturbed& other, const operations& sequence,
                  happened& sums) {
  std::vector<world_request> requests, of_both;
  operations how;
  for (const operation& o : sequence) {
    if (o.kind % 2 == 1) {
      how.push_back(o);
    } else if (o.kind % 8 != 6) {
      requests.push_back(alone.of(o));
      of_both.push_back(requests.back());
    } else {
      of_both.push_back(other.of(o));
      of_both.back().model = 1;
    }
  }
  // Running a request alone takes most of the time, so each request is run in several worlds.
  for (std::uint32_t world = 0; world < 4; ++world) {
    if (world < 3)
      run_disturbed({&alone.model()}, requests, how, sums);
    else // in a pool of two models
      run_disturbed({&alone.model(), &other.model()}, of_both, how, sums);
    for (operation& o : how)
      o = {o.kind, o.a + 101 * world + 1, o.b + 37, o.c + 59 * world + 1};
  }
}

} // namespace

TEST_CASE("a request means the same whatever happens to it, on every kind of model",
          "[actors][meaning]") {
  log::configure(log::level::off); // an engine starts and fails hundreds of times
  const std::size_t n_models = takes_long() ? n_small_models() : n_usual_models;
  const auto n = static_cast<int>(n_models);
  happened sums;
  auto other = std::make_unique<undisturbed>(small_model_at(n_models - 1));
  for (std::size_t m = 0; m < n_models; ++m) {
    const small_model& model = small_model_at(m);
    CAPTURE(model.name);
    auto alone = std::make_unique<undisturbed>(model);
    // The models take turns with sequences of their own, until one fails and is made shorter.
    std::size_t turn = 0;
    std::optional<clock_type::time_point> failed;
    const auto broke = first_failure({6 * n, 8 * n, 24}, [&](const operations& sequence) {
      if (failed ? clock_type::now() - *failed > time_to_shorten : turn++ % n_models != m) return;
      try {
        run_sequence(*alone, *other, sequence, sums);
      } catch (const broken&) {
        if (!failed) failed = clock_type::now();
        throw;
      }
    });
    INFO(printable(broke));
    REQUIRE(broke.empty());
    other = std::move(alone);
  }
  CAPTURE(sums.cuts, sums.pauses, sums.reloads, sums.cached_tokens, sums.fetched_blocks);
  CAPTURE(sums.preemptions, sums.restarts, sums.deaths, sums.orders);
  // Each of these events must have occurred; how often depends on when threads run.
  CHECK(sums.preemptions > 0);
  CHECK(sums.restarts > 0);
  CHECK(sums.cuts > 0);
  CHECK(sums.cached_tokens > 0);
}
