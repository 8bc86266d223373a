// block_schedule: in which order a block of micro-batches walks through tokens and layers, as data.
//
// Pure, one thread at a time; owns a few numbers per micro-batch. A task is one layer of one step
// of one micro-batch; step 0 is its prefill, step t > 0 decodes its token t. A round is one sweep
// over the layers in which every alive micro-batch takes one step; a layer is fetched once per
// round for all of them. The two orders (FlexGen, arXiv 2303.06865, section 4.2 and appendix A.2)
// differ only in who enters a round:
//   zigzag    all free slots are filled at once: token -> layer -> micro-batch, and micro-batches
//   of
//             equal length stay at one token
//   diagonal  one micro-batch enters per `stagger` rounds, so that all sit at different tokens: a
//             warm-up triangle, then diagonals. Prefills spread over rounds, KV is never all full.
// In both a micro-batch that has taken its last step leaves, and a waiting one enters.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace twill::models::offload {

enum class search_order : std::uint8_t { zigzag, diagonal };

const char* name_of(search_order order);
std::optional<search_order> search_order_named(const std::string& name);

struct schedule_task {
  std::int32_t token = 0; ///< the micro-batch's own step; 0: prefill
  std::int32_t layer = 0;
  std::int32_t batch = 0; ///< micro-batch, in order of arrival

  friend bool operator==(const schedule_task&, const schedule_task&) = default;
};

struct schedule_shape {
  search_order order = search_order::zigzag;
  std::int32_t n_layers = 1;
  std::int32_t slots = 1;            ///< micro-batches alive at once, at most
  std::int32_t stagger = 1;          ///< diagonal: rounds from one entry to the next, at least 1
  std::vector<std::int32_t> n_steps; ///< of each micro-batch, prefill included; each at least 1
};

/// The entry distance that spreads `slots` micro-batches evenly over `n_steps`: the least KV at
/// once, where 1 is the fewest rounds.
std::int32_t even_stagger(std::int32_t n_steps, std::int32_t slots);

/// What is wrong with a shape: "field, rule, given value".
std::optional<std::string> problem_of(const schedule_shape& shape);

/// Yields the tasks one by one. A copy runs ahead of its original: that is how to prefetch.
class schedule_cursor {
public:
  /// `shape` must have no problem_of().
  explicit schedule_cursor(const schedule_shape& shape);

  /// The next task; none when every micro-batch known so far has ended.
  std::optional<schedule_task> next();

  /// The micro-batch ends with the round under way (its sequences all drew their end); one that
  /// waits never enters. Ended and unknown ones are ignored.
  void leave(std::int32_t batch);
  /// A micro-batch more, at the end of the queue; returns its number.
  std::int32_t add(std::int32_t n_steps);

  /// Rounds begun so far.
  std::int64_t rounds() const { return rounds_; }
  std::size_t alive() const { return alive_.size(); }

private:
  struct member {
    std::int32_t batch = 0;
    std::int32_t token = 0;
    std::int32_t n_steps = 0;
  };
  void end_round();
  void admit();

  search_order order_;
  std::int32_t n_layers_;
  std::size_t slots_;
  std::int32_t stagger_;
  std::deque<member> waiting_;
  std::vector<member> alive_;
  std::int32_t n_batches_ = 0;
  std::int32_t layer_ = 0;
  std::size_t at_ = 0;
  std::int64_t rounds_ = 0;
  std::int64_t next_entry_ = 0; ///< diagonal: the first round that another may enter
};

/// All tasks at once, where they are few.
std::vector<schedule_task> all_tasks(const schedule_shape& shape);

/// How often a layer's weights are fetched when one layer stays at a time: runs of equal layer.
std::int64_t layer_fetches(std::span<const schedule_task> tasks);
std::int64_t layer_fetches(const schedule_shape& shape);

/// Proves an order task by task: each task of the shape exactly once, (t, l, b) after
/// (t, l - 1, b), (t, 0, b) after (t - 1, last layer, b), at most `slots` micro-batches alive.
class schedule_checker {
public:
  explicit schedule_checker(const schedule_shape& shape);

  /// The first violation in words, from then on always the same; none while all is well.
  const std::optional<std::string>& feed(const schedule_task& next);
  /// As feed, after the last task.
  const std::optional<std::string>& finish();

private:
  std::string judge(const schedule_task& next);

  schedule_shape shape_;
  std::vector<std::int64_t> done_; ///< tasks of each micro-batch so far: (token, layer) flattened
  std::int64_t fed_ = 0;
  std::int32_t alive_ = 0;
  std::optional<std::string> violation_;
};

std::optional<std::string> check_schedule(std::span<const schedule_task> tasks,
                                          const schedule_shape& shape);

} // namespace twill::models::offload
