// sequence_groups: the requests that the batcher holds, each with its sequences, one per choice.
//
// One thread at a time (the batcher's). Drawn tokens are kept here, so that a sequence can be
// computed again after a preemption or the loss of its executor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/messages.hpp"
#include "actors/scheduling/id_table.hpp"
#include "config/base/ledger.hpp"

namespace twill::actors {

class sequence_groups {
public:
  /// Blocks of a sequence's prefix in host memory.
  struct fetched_blocks {
    std::int32_t first = 0; ///< index of the first of these blocks in the sequence
    std::vector<host_block> blocks;
    std::uint64_t fetch_id = 0; ///< id of the fetch under way; 0: none
    std::int32_t n_fetches = 0; ///< fetches since the sequence's last admission

    /// How many of these blocks directly follow the first n_blocks of the sequence.
    std::int32_t after(std::int32_t n_blocks) const {
      const std::int32_t last = first + static_cast<std::int32_t>(blocks.size());
      return first <= n_blocks && n_blocks < last ? last - n_blocks : 0;
    }
  };
  struct group;
  struct alignas(64) sequence {
    // The members that change with every token are together in one cache line.
    request_id request = 0;
    group* owner = nullptr;
    std::vector<std::int32_t> output; ///< tokens drawn so far, including those of an earlier run
    std::int32_t choice = 0;
    /// number of its first blocks that the prefix cache has been given
    std::int32_t n_inserted = 0;
    steady_clock::time_point last_token;
    bool finished = false; ///< its session has been informed of its end

    sequence_spec spec;
    std::vector<std::int32_t> blocks; ///< its block table
    /// blocks of its prefix that were fetched from the tiers off the device
    fetched_blocks fetched;
    steady_clock::time_point scheduled; ///< when the sequence first entered a step

    std::int32_t n_known() const {
      return static_cast<std::int32_t>(spec.prompt->size() + output.size());
    }
    /// Tokens [first, last) of prompt and output.
    std::vector<std::int32_t> known_tokens(std::int32_t first, std::int32_t last) const;
  };
  struct group {
    sequence_id first = 0;  ///< the first of n_choices consecutive ids, one for each choice
    sequence_id leader = 0; ///< the first sequence, which computes the prompt for all choices
    std::int32_t n_choices = 0;
    std::int32_t n_left = 0;        ///< sequences not yet forgotten
    std::int32_t n_running = 0;     ///< sequences in the running set
    std::int32_t cached_tokens = 0; ///< cached tokens of the prompt at the first admission
    std::int32_t n_lost = 0;        ///< failed steps that had a row of one of its sequences
    /// the request is over; its sequences leave as soon as no outstanding step has them
    bool released = false;
    bool paused = false;           ///< its client reads too slowly, or gives no credit
    bool scheduled = false;        ///< one of its sequences has been in a step
    bool drew = false;             ///< a step has drawn a token of one of its sequences
    std::uint64_t counted_for = 0; ///< the client whose waiting requests are limited; 0: none
    std::string tenant, client_id; ///< shown in scheduler_snapshot
    /// Scores (log-probabilities) of all prompt tokens but the first, while steps compute them;
    /// null once they are delivered.
    std::shared_ptr<std::vector<prompt_score>> scores;
  };

  /// Adds a new request; its choices get the next ids. A choice that was finished in an earlier run
  /// of the request (request::made) has no sequence, and its id stays unused. `counted_for` is the
  /// client whose number of waiting requests is limited; 0: none.
  const group& add(const submit_prompt& prompt, std::uint64_t counted_for = 0);
  /// Returns the request; null if it is unknown or released.
  group* find(request_id request);
  /// Returns the sequence; null if it was removed.
  sequence* find_sequence(sequence_id id);
  const sequence* find_sequence(sequence_id id) const { return sequences_.find(id); }
  sequence& at(sequence_id id) { return sequences_.at(id); }
  /// Prefetches memory into the CPU cache: first call prefetch() for a sequence that will soon be
  /// used, then prefetch_sequence(), after work on a few other sequences.
  void prefetch(sequence_id id) const { sequences_.prefetch(id); }
  void prefetch_sequence(sequence_id id) const { sequences_.prefetch_value(id); }
  const sequence& at(sequence_id id) const { return sequences_.at(id); }
  static group& group_of(const sequence& s) { return *s.owner; }

  /// A sequence enters the running set.
  void note_opened(const sequence& s);
  void set_paused(request_id request, bool now_paused);
  /// From now on find() does not return the request.
  void mark_released(request_id request);
  /// Clears the block table of a sequence that left the running set, and removes the sequence if it
  /// has ended; a sequence that was preempted stays. Returns its request if that was the request's
  /// last sequence.
  std::optional<request_id> release(const released_sequence& r);
  /// The device is lost: no sequence has blocks or runs any more.
  void forget_device();

  /// Calls visit(id, sequence, its group) for each, in any order.
  template <class F>
  void each_sequence(F&& visit) const {
    sequences_.for_each(
        [&](sequence_id id, const sequence& s) { visit(id, s, groups_.at(s.request)); });
  }
  std::size_t size() const { return groups_.size(); }
  std::vector<request_id> requests() const;
  /// Requests with a running sequence.
  std::int32_t n_running() const { return counts_[running]; }
  /// Requests without a running sequence that are not paused.
  std::int32_t n_waiting() const { return counts_[waiting]; }
  /// Waiting requests that were added with `counted_for`.
  std::int32_t n_waiting_of(std::uint64_t counted_for) const;
  /// Requests without a running sequence that are paused.
  std::int32_t n_paused() const { return counts_[paused]; }
  /// Adds what this class counts for its requests to the ledger.
  void account(ledger& to) const;

private:
  enum kind : std::size_t { waiting, running, paused, released };
  static kind kind_of(const group& g);
  template <class F>
  void change(group& g, F&& apply);
  void count(const group& g, std::int32_t by);

  std::array<std::int32_t, 4> counts_{};                       ///< groups by kind
  std::unordered_map<std::uint64_t, std::int32_t> waiting_of_; ///< by group::counted_for
  id_table<sequence> sequences_;
  id_table<group> groups_;
  sequence_id next_id_ = 1;
};

} // namespace twill::actors
