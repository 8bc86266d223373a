// load_batcher: runs a batcher (actors/batcher) under a load of many requests, to time how it plans
// steps. The pool of KV blocks is real. No model computes the steps: made-up results of a step are
// returned at once.
//
// Only one thread at a time may use an object. No two requests have the same prompt. A request that
// ends is replaced by a new one, so the number of waiting requests stays the same.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/batcher/batcher_core.hpp"
#include "actors/kv/block_pool.hpp"
#include "tools/twill-bench/plan/request_load.hpp"

namespace twill::bench {

/// CPU time of one step in seconds, split by the component that used it.
struct plan_seconds {
  double plan = 0;      ///< the batcher, from the result of a step to the next plan
  double results = 0;   ///< the batcher, with the step's results
  double allocator = 0; ///< the block allocator, applying changes and answering requests
};

class load_batcher final : actors::session_sink {
public:
  explicit load_batcher(const load_settings& settings);

  /// Hands the results of the oldest unfinished step to the batcher and plans the next steps.
  plan_seconds step();
  std::int32_t running() const;
  std::int32_t waiting() const;

private:
  void queued(actors::request_id) override {}
  void scored(actors::request_id, actors::prompt_scored) override {}
  void pooled(actors::request_id, actors::prompt_pooled) override {}
  void token(actors::request_id, actors::token_ready) override {}
  void failed(actors::request_id, const actors::request_error&) override {}
  void forgotten(actors::request_id) override { ++missing_; }

  void plan(plan_seconds& spent);

  actors::stats_board stats_;
  actors::block_pool pool_;
  actors::batcher_core core_;
  request_maker requests_;
  result_maker results_;
  std::vector<actors::step_plan_ptr> sent_;
  std::int32_t missing_ = 0;
};

} // namespace twill::bench
