// block_schedule: the order of the tasks in which a block of micro-batches passes through tokens
// and layers.
//
// The free functions are pure. One thread at a time may use a schedule_cursor, which keeps a few
// numbers per micro-batch. A task is one layer of one step of one micro-batch (a square in
// FlexGen's figures); step 0 is the micro-batch's prefill, and step t > 0 decodes its token t. A
// round is one sweep over the layers in which every micro-batch that is alive takes one step; a
// layer's weights are fetched once per round for all of them. FlexGen's two orders (arXiv
// 2303.06865, section 4.2 and appendix A.2) differ only in which micro-batches enter a round:
//   zigzag    A waiting micro-batch enters as soon as fewer than `max_alive` are alive, so in the
//             first round that many enter. The loops nest as token -> layer -> micro-batch, and
//             micro-batches of equal length are always at the same token.
//   diagonal  One micro-batch enters per `stagger` rounds, so that all are at different tokens.
//             Prefills spread over rounds, and no two micro-batches have their most KV at the same
//             time.
// In both orders a micro-batch that has taken its last step leaves and a waiting one enters.
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
  std::int32_t token = 0; ///< the micro-batch's own step; 0 is its prefill
  std::int32_t layer = 0;
  std::int32_t batch = 0; ///< number of the micro-batch, in order of arrival

  friend bool operator==(const schedule_task&, const schedule_task&) = default;
};

struct schedule_shape {
  search_order order = search_order::zigzag;
  std::int32_t n_layers = 1;
  std::int32_t max_alive = 1; ///< most micro-batches alive at once
  std::int32_t stagger = 1;   ///< diagonal only: rounds from one entry to the next, at least 1
  std::vector<std::int32_t>
      n_steps; ///< steps of each micro-batch with its prefill, each at least 1
};

/// The stagger (rounds between the entries of two micro-batches) that spreads `max_alive`
/// micro-batches evenly over `n_steps` steps. This stagger needs the least KV memory at once; a
/// stagger of 1 takes the fewest rounds.
std::int32_t even_stagger(std::int32_t n_steps, std::int32_t max_alive);

/// Describes what is wrong with a shape, as "field, rule, given value"; none if the shape is valid.
std::optional<std::string> problem_of(const schedule_shape& shape);

/// Yields the tasks of a schedule one by one. To look at later tasks, for example to prefetch for
/// them, advance a copy of the cursor.
class schedule_cursor {
public:
  /// `shape` must be valid: problem_of(shape) returns none.
  explicit schedule_cursor(const schedule_shape& shape);

  /// The next task; none when all micro-batches added so far have ended.
  std::optional<schedule_task> next();

  /// Makes the current round the last round of `batch`, because all its sequences have drawn an end
  /// token. If `batch` is still waiting, it never enters. Calls for unknown or ended micro-batches
  /// are ignored.
  void leave(std::int32_t batch);
  /// Adds a micro-batch at the end of the queue and returns its number.
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
  std::size_t max_alive_;
  std::int32_t stagger_;
  std::deque<member> waiting_;
  std::vector<member> alive_;
  std::int32_t n_batches_ = 0;
  std::int32_t layer_ = 0;
  std::size_t at_ = 0;
  std::int64_t rounds_ = 0;
  std::int64_t next_entry_ =
      0; ///< diagonal only: the first round that another micro-batch may enter
};

/// All tasks of a small schedule.
std::vector<schedule_task> all_tasks(const schedule_shape& shape);

/// The number of layer fetches if the device holds the weights of one layer at a time. Consecutive
/// tasks of one layer need one fetch.
std::int64_t layer_fetches(std::span<const schedule_task> tasks);
std::int64_t layer_fetches(const schedule_shape& shape);

/// Checks an order of tasks (token t, layer l, batch b) task by task. Each task of the shape must
/// come exactly once. (t, l, b) must come after (t, l - 1, b), and (t, 0, b) after (t - 1, last
/// layer, b). At most `max_alive` micro-batches may be alive at once.
class schedule_checker {
public:
  explicit schedule_checker(const schedule_shape& shape);

  /// Takes the next task. Returns the first violation so far in words, or none.
  const std::optional<std::string>& feed(const schedule_task& next);
  /// Checks that the last task has been fed; returns like feed().
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
