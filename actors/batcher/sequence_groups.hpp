// sequence_groups: the requests that the batcher holds, each with its sequences, one per choice.
//
// One thread at a time (the batcher's). Drawn tokens are kept here, so that a sequence that was
// preempted, or whose executor was lost, can be computed again.
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
    std::int32_t first = 0; ///< the number of the first in the sequence
    std::vector<host_block> blocks;
    std::uint64_t fetch_id = 0; ///< of the fetch under way; 0: none is
    std::int32_t n_fetches = 0; ///< since its last admission

    /// How many of them follow the first n_blocks of the sequence.
    std::int32_t after(std::int32_t n_blocks) const {
      const std::int32_t last = first + static_cast<std::int32_t>(blocks.size());
      return first <= n_blocks && n_blocks < last ? last - n_blocks : 0;
    }
  };
  struct group;
  struct alignas(64) sequence {
    // What every token of it changes lies in one line of the cache.
    request_id request = 0;
    group* owner = nullptr;
    std::vector<std::int32_t> output; ///< tokens drawn so far, in an earlier run as well
    std::int32_t choice = 0;
    std::int32_t n_inserted = 0; ///< first blocks that the prefix cache has been told of
    steady_clock::time_point last_token;
    bool finished = false; ///< its session knows of its end

    sequence_spec spec;
    std::vector<std::int32_t> blocks;   ///< its block table
    fetched_blocks fetched;             ///< of its prefix, from the tiers off the device
    steady_clock::time_point scheduled; ///< when it first entered a step

    std::int32_t n_known() const {
      return static_cast<std::int32_t>(spec.prompt->size() + output.size());
    }
    /// Tokens [first, last) of prompt and output.
    std::vector<std::int32_t> known_tokens(std::int32_t first, std::int32_t last) const;
  };
  struct group {
    sequence_id first = 0;  ///< of n_choices consecutive ids, one for each choice
    sequence_id leader = 0; ///< the first sequence, which computes the prompt for all
    std::int32_t n_choices = 0;
    std::int32_t n_left = 0;        ///< sequences not yet forgotten
    std::int32_t n_running = 0;     ///< sequences in the running set
    std::int32_t cached_tokens = 0; ///< of the prompt, when it was first admitted
    std::int32_t n_lost = 0;        ///< steps that failed with one of its sequences
    bool released = false;          ///< it is over; its sequences leave as soon as no step has them
    bool paused = false;            ///< its reader is slow, or gives no credit
    bool scheduled = false;         ///< one of its sequences has been in a step
    bool drew = false;              ///< a step has drawn a token of it
    std::uint64_t counted_for = 0;  ///< the client that has a limit; 0: none
    std::string tenant, client_id;  ///< for pictures
    /// Of the prompt's tokens but the first, while steps score them; null once they are told.
    std::shared_ptr<std::vector<prompt_score>> scores;
  };

  /// A new request; its choices get the next ids. A choice that an earlier run has finished has no
  /// sequence, and its id stays unused. `counted_for` names the client whose waiting requests are
  /// counted; 0: none.
  const group& add(const submit_prompt& prompt, std::uint64_t counted_for = 0);
  /// The request, unless it is unknown or released.
  group* find(request_id request);
  /// The sequence, unless it is forgotten.
  sequence* find_sequence(sequence_id id);
  const sequence* find_sequence(sequence_id id) const { return sequences_.find(id); }
  sequence& at(sequence_id id) { return sequences_.at(id); }
  /// The sequence will soon be asked for, and later its last token.
  void prefetch(sequence_id id) const { sequences_.prefetch(id); }
  void expect_sequence(sequence_id id) const { sequences_.expect_value(id); }
  const sequence& at(sequence_id id) const { return sequences_.at(id); }
  static group& group_of(const sequence& s) { return *s.owner; }

  /// A sequence enters the running set.
  void note_opened(const sequence& s);
  void set_paused(request_id request, bool now_paused);
  /// From now on find() does not know the request.
  void mark_released(request_id request);
  /// Takes back what a sequence held; a sequence that is gone is forgotten. Returns the request
  /// when that was its last sequence.
  std::optional<request_id> release(const released_sequence& r);
  /// No sequence has blocks or runs any more.
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
  /// Requests without one, that are not paused.
  std::int32_t n_waiting() const { return counts_[waiting]; }
  /// Of these, those that were added with `counted_for`.
  std::int32_t n_waiting_of(std::uint64_t counted_for) const;
  /// Requests without one, that are paused.
  std::int32_t n_paused() const { return counts_[paused]; }
  /// Adds what it counts for its requests.
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
