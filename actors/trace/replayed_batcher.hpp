// replayed_batcher: a batcher_core and a block pool that get one scheduler's lines of a trace as
// input. Throws bad_trace if a line is not valid, and other_decision if the decisions are not the
// recorded ones.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/batcher/batcher_core.hpp"
#include "actors/kv/block_pool.hpp"
#include "actors/trace/scheduler_trace.hpp"
#include "actors/trace/trace_line.hpp"

namespace twill::actors {

class replayed_batcher final : session_sink, tier_sink, trace_sink {
public:
  explicit replayed_batcher(const trace_line& begin);

  /// Passes the input on the line to the batcher.
  void see(const trace_line& line);
  /// Checks that the batcher has made the decision on the line.
  void compare(const trace_line& line);

private:
  void arrive(const trace_line& line);
  std::vector<made_choice> read_made(std::string_view text, const submit_prompt& of);
  void take_live(request_id request, std::size_t n_tokens);
  void be_ready(const trace_line& line);
  void finish_step(const trace_line& line);
  void grant(const trace_line& line);
  void feed(const trace_line& line);
  void pump();
  void pump_at_once();
  bool apply();
  bool answer();
  steady_clock::time_point now() const { return steady_clock::time_point{} + time_; }

  // session_sink
  void queued(request_id) override {}
  void scored(request_id, prompt_scored) override {}
  void pooled(request_id, prompt_pooled) override {}
  void token(request_id, token_ready) override {}
  void failed(request_id, const request_error&) override {}
  void forgotten(request_id request) override;
  // tier_sink
  void fetch(fetch_blocks order, std::chrono::milliseconds) override {
    asked_[order.fetch_id] = order.keys.size();
  }
  void spilled(blocks_spilled) override {}
  // trace_sink
  void saw(std::chrono::nanoseconds, std::string_view) override {}
  void decided(std::chrono::nanoseconds, std::string_view body) override {
    decisions_.emplace_back(body);
  }

  batcher_limits limits_;
  bool has_tiers_;
  bool answers_at_once_; ///< the trace has no lines for the allocator's answers
  stats_board stats_;
  scheduler_trace trace_;
  block_pool pool_;
  batcher_core core_;
  std::chrono::nanoseconds time_{0};
  std::uint64_t generation_ = 0;
  std::deque<std::string> decisions_;       ///< decisions that were not compared yet
  std::deque<step_plan_ptr> outstanding_;   ///< oldest first
  std::optional<kv_grant> grant_;           ///< the pool's answer, which waits for its line
  std::vector<std::size_t> most_tier_keys_; ///< for each match of grant_
  std::unordered_map<request_id, std::size_t> live_; ///< tokens of prompts and of earlier runs
  std::size_t live_tokens_ = 0;
  std::unordered_map<std::uint64_t, std::size_t> asked_; ///< blocks of a fetch, by fetch id
};

} // namespace twill::actors
