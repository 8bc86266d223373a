// scheduler_trace: writes all inputs and decisions of a batcher to a trace_sink, so that replay()
// can repeat them. The README.md beside this file describes the lines.
//
// One thread at a time (the batcher's). Of prompts and outputs, only lengths are written, and one
// hash for each full block together with all blocks before it. The hash key is drawn for each trace
// and never written: equal beginnings can be recognized, but their texts cannot be recovered.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/batcher/batcher_limits.hpp"
#include "actors/batcher/batcher_observer.hpp"
#include "actors/kv/block_key.hpp"
#include "actors/messages.hpp"
#include "actors/trace/trace_sink.hpp"

namespace twill::actors {

class scheduler_trace final : public batcher_observer {
public:
  /// `sink` must outlive it.
  explicit scheduler_trace(trace_sink& sink);

  /// The first line of a stream: what decisions depend on.
  void begin(const std::string& model, const batcher_limits& limits, bool has_tiers);

  // batcher_observer: inputs
  void executor_ready(std::uint64_t generation, const batcher_limits& limits) override;
  void arrived(const submit_prompt& prompt) override;
  void choice_finished(request_id request, std::int32_t choice) override;
  void released(request_id request) override;
  void paused(request_id request) override;
  void resumed(request_id request) override;
  void waited_too_long(request_id request) override;
  void fetched(std::uint64_t fetch_id, std::size_t n_blocks, steady_clock::time_point now) override;
  void granted(const kv_grant& grant, steady_clock::time_point now) override;
  void step_done(const step_plan& plan, const step_result& result,
                 steady_clock::time_point now) override;
  void step_failed(std::uint64_t generation) override;
  void ignored_step() override { saw("\"e\":\"ignored\""); }

  // batcher_observer: decisions
  void queued(sequence_id first, const submit_prompt& prompt) override;
  void planned(const step_plan& plan, std::int32_t preempted) override;
  void ended(request_id request, const request_error& why) override;
  void forgotten(sequence_id id) override { beginnings_.erase(id); }
  void rested() override { sink_.rested(); }

private:
  /// The blocks that a sequence has filled so far.
  struct beginning {
    block_key key;                  ///< key of its last full block
    std::vector<std::int32_t> tail; ///< tokens after that block
  };

  std::chrono::nanoseconds at(steady_clock::time_point now) const { return now - start_; }
  void saw(const std::string& body) { sink_.saw(at(steady_clock::now()), body); }
  void saw_order(const char* what, request_id request);
  bool extend(beginning& of, std::int32_t token) const;
  std::string extend_all(beginning& of, std::span<const std::int32_t> tokens) const;
  void take(const batcher_limits& limits);

  trace_sink& sink_;
  steady_clock::time_point start_;
  hash_key key_;
  std::int32_t block_tokens_ = 0;
  bool hashes_ = false; ///< prefixes are cached
  /// The blocks with which the sequences of the prompt that arrived last begin. If an earlier run
  /// of the request has drawn output, the blocks include it, so there is one entry for each choice
  /// (output of the request); otherwise one entry serves all choices.
  std::vector<beginning> arrived_;
  std::unordered_map<sequence_id, beginning> beginnings_;
};

} // namespace twill::actors
