// scheduler_trace: tells a trace_sink all that a batcher saw and decided, so that replay() can have
// a batcher decide again. What is on a line is in README.md beside this file.
//
// One thread at a time (the batcher's). Of prompts and outputs it tells lengths, and one hash for
// each full block together with all blocks before it, keyed with a key that is drawn for each trace
// and never told: equal beginnings can be seen, their texts cannot.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/batcher/batcher_limits.hpp"
#include "actors/kv/block_key.hpp"
#include "actors/messages.hpp"
#include "actors/trace/trace_sink.hpp"

namespace twill::actors {

class scheduler_trace {
public:
  /// `sink` must outlive it.
  explicit scheduler_trace(trace_sink& sink);

  // What the batcher sees.
  void begin(const std::string& model, const batcher_limits& limits, bool has_tiers);
  void executor_ready(std::uint64_t generation, const batcher_limits& limits);
  /// A prompt, before it is refused or queued.
  void arrived(const submit_prompt& prompt);
  void choice_finished(request_id request, std::int32_t choice);
  void released(request_id request);
  void paused(request_id request);
  void resumed(request_id request);
  void waited_too_long(request_id request);
  void fetched(std::uint64_t fetch_id, std::size_t n_blocks, steady_clock::time_point now);
  /// What the tiers off the device added to the allocator's answer; where there are tiers.
  void tiers_answered(const kv_grant& grant, steady_clock::time_point now);
  /// The result of `plan`, whose rows are not applied yet.
  void step_done(const step_plan& plan, const step_result& result, steady_clock::time_point now);
  void step_failed(std::uint64_t generation);
  /// A step of an earlier life came back: nothing follows but another try to plan.
  void ignored_step() { saw("\"e\":\"ignored\""); }

  // What it decides.
  /// The prompt that arrived last is queued; its choices are the sequences from `first` on.
  void queued(sequence_id first, const submit_prompt& prompt);
  void planned(const step_plan& plan, std::int32_t preempted);
  void ended(request_id request, const request_error& why);
  /// A sequence has left for good.
  void forgotten(sequence_id id) { beginnings_.erase(id); }

  /// Nothing is outstanding and nothing can be planned.
  void rested() { sink_.rested(); }

private:
  /// The blocks that a sequence has filled so far.
  struct beginning {
    block_key key;                  ///< of its last full block
    std::vector<std::int32_t> tail; ///< tokens behind that
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
  /// Of the prompt that arrived last: one entry for each choice where an earlier run has drawn
  /// output, else one entry for all choices.
  std::vector<beginning> arrived_;
  std::unordered_map<sequence_id, beginning> beginnings_;
};

} // namespace twill::actors
