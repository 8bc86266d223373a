// Runs requests in an engine that is disturbed in every way possible while they run.
#pragma once

#include <memory>
#include <vector>

#include "tests/actors/meaning/heard.hpp"
#include "tests/actors/meaning/small_models.hpp"
#include "tests/support/operations.hpp"

namespace twill::test {

/// An engine with room for every request, which runs one request at a time.
class quiet_engine {
public:
  explicit quiet_engine(const small_model& model);
  ~quiet_engine();
  /// Throws `broken` where the request is refused or fails.
  std::vector<actors::event> run(const actors::request& asked);

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

struct world_request {
  actors::request asked;
  std::vector<actors::event> expected;
  std::size_t model = 0; ///< in the world's list of models
};

/// How often each kind of disturbance met a request, over all worlds.
struct happened {
  std::uint64_t preemptions = 0, restarts = 0, cached_tokens = 0, fetched_blocks = 0, cuts = 0,
                pauses = 0, deaths = 0, reloads = 0, orders = 0;
};

using model_list = std::vector<const small_model*>;

/// Runs all requests in one engine (or, for several models, in a model pool), whose settings and
/// disturbances are derived from `how`. Throws `broken` if a request gets any other answer than it
/// expects.
void run_disturbed(const model_list& models, const std::vector<world_request>& requests,
                   const operations& how, happened& sums);

} // namespace twill::test
