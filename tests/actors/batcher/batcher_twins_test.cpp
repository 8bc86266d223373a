// The batcher's tables of requests (sequence_groups) and of steps that were sent to the executor
// (step_pipeline), compared with plain lists under random operations.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/batcher/sequence_groups.hpp"
#include "actors/batcher/step_pipeline.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using namespace twill;
using namespace twill::actors;
using namespace twill::test;

namespace {

struct sequence_row {
  sequence_id id = 0;
  std::int32_t choice = 0;
  std::uint64_t seed = 0;
  bool running = false, has_blocks = false;
  std::vector<std::int32_t> tokens; ///< of prompt and output
};
struct request_row {
  request_id id = 0;
  sequence_id first = 0, leader = 0;
  std::uint64_t counted_for = 0;
  bool paused = false, released = false, scheduled = false;
  std::vector<sequence_row> sequences;

  bool runs() const {
    return std::any_of(sequences.begin(), sequences.end(),
                       [](const sequence_row& one) { return one.running; });
  }
};

class both {
public:
  void apply(const operation& op) {
    if (op.kind % 8 < 2 || rows_.empty()) {
      add(op);
    } else {
      request_row& of = rows_[op.a % rows_.size()];
      sequence_row& one = of.sequences[op.b % of.sequences.size()];
      switch (op.kind % 8) {
      case 2:
      case 3:
        if (one.running) break;
        one.running = of.scheduled = one.has_blocks = true;
        groups_.at(one.id).blocks = {1, 2};
        groups_.at(one.id).n_inserted = 1;
        groups_.note_opened(groups_.at(one.id));
        break;
      case 4:
        release(of, one, op.c % 3 > 0);
        break;
      case 5:
        if (!of.released) of.paused = op.c % 2 == 0;
        groups_.set_paused(of.id, op.c % 2 == 0);
        break;
      case 6:
        if (op.c % 3 > 0) break;
        of.released = true;
        groups_.mark_released(of.id);
        break;
      default:
        if (op.c % 8 == 0) {
          forget_device();
        } else {
          groups_.at(one.id).output.push_back(static_cast<std::int32_t>(op.c));
          one.tokens.push_back(static_cast<std::int32_t>(op.c));
        }
      }
    }
    compare();
  }

  void end() {
    while (!rows_.empty())
      release(rows_.back(), rows_.back().sequences.back(), true);
    compare();
    demand_equal(groups_.size(), 0U, "the number of no requests");
  }

private:
  void add(const operation& op) {
    submit_prompt prompt;
    prompt.request = ++last_request_;
    prompt.n_choices = static_cast<std::int32_t>(1 + op.a % 3);
    prompt.spec.seed = op.b;
    prompt.spec.prompt_logprobs = op.c % 4 == 0 ? 1 : -1;
    const auto length = static_cast<std::int32_t>(1 + op.b % 4);
    auto ids = std::make_shared<std::vector<std::int32_t>>();
    for (std::int32_t i = 0; i < length; ++i)
      ids->push_back(100 + i);
    prompt.spec.prompt = ids;
    request_row row{prompt.request, next_id_, 0, op.c % 3, false, false, false, {}};
    auto made = std::make_shared<std::vector<made_choice>>();
    for (std::int32_t choice = 0; choice < prompt.n_choices; ++choice) {
      const sequence_id id = next_id_++;
      // An earlier run may have ended some, but not all, of the choices.
      const bool over = op.c % 5 == 0 && choice + 1 < prompt.n_choices && (op.b >> choice) % 2 == 1;
      made->push_back({{7 + choice}, over});
      if (over) continue;
      sequence_row one{id, choice, op.b + static_cast<std::uint64_t>(choice), false, false, *ids};
      if (op.c % 5 == 0) one.tokens.push_back(7 + choice);
      row.sequences.push_back(one);
    }
    row.leader = row.sequences.front().id;
    if (op.c % 5 == 0) prompt.made = made;
    const auto& added = groups_.add(prompt, row.counted_for);
    demand_equal(added.scores != nullptr, op.c % 4 == 0, "whether the prompt has scores");
    if (added.scores)
      demand_equal(added.scores->size(), ids->size() - 1, "the number of scores of a prompt");
    rows_.push_back(row);
  }

  void release(request_row& of, sequence_row& one, bool gone) {
    const bool is_last = gone && of.sequences.size() == 1;
    const request_id request = of.id;
    const auto over = groups_.release({one.id, one.has_blocks, one.running, gone});
    demand_equal(over.has_value(), is_last, "whether a request is over");
    if (over) demand_equal(*over, request, "which request is over");
    one.running = one.has_blocks = false;
    if (!gone) return;
    std::erase_if(of.sequences, [id = one.id](const sequence_row& each) { return each.id == id; });
    if (is_last) std::erase_if(rows_, [&](const request_row& each) { return each.id == request; });
  }

  void forget_device() {
    groups_.forget_device();
    for (request_row& of : rows_)
      for (sequence_row& one : of.sequences)
        one.running = one.has_blocks = false;
  }

  template <class F>
  std::int32_t count(F&& which) const {
    return static_cast<std::int32_t>(std::count_if(rows_.begin(), rows_.end(), which));
  }

  void compare() {
    using row = request_row;
    const auto waits = [](const row& one) { return !one.released && !one.runs() && !one.paused; };
    demand_equal(groups_.n_waiting(), count(waits), "requests that wait");
    demand_equal(groups_.n_running(),
                 count([](const row& one) { return !one.released && one.runs(); }),
                 "requests that run");
    demand_equal(groups_.n_paused(),
                 count([](const row& one) { return !one.released && !one.runs() && one.paused; }),
                 "requests that are paused");
    for (std::uint64_t client = 1; client < 3; ++client)
      demand_equal(groups_.n_waiting_of(client),
                   count([&](const row& one) { return waits(one) && one.counted_for == client; }),
                   "requests of a client that wait");
    demand_equal(groups_.n_waiting_of(0), 0, "requests that are counted for nobody");
    demand_equal(groups_.size(), rows_.size(), "the number of requests");
    auto ids = groups_.requests();
    std::sort(ids.begin(), ids.end());
    std::size_t n_sequences = 0, n_visited = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      demand_equal(ids[i], rows_[i].id, "a request");
      compare(rows_[i]);
      n_sequences += rows_[i].sequences.size();
    }
    groups_.each_sequence([&](sequence_id id, const auto& s, const auto& of) {
      ++n_visited;
      demand(&groups_.at(id) == &s && s.owner == &of, "a sequence belongs to its group");
    });
    demand_equal(n_visited, n_sequences, "the number of sequences");
    demand(groups_.find(last_request_ + 1) == nullptr, "an unknown request");
    demand(groups_.find_sequence(next_id_) == nullptr, "an unknown sequence");
  }

  void compare(const request_row& row) {
    const auto* group = groups_.find(row.id);
    demand_equal(group == nullptr, row.released, "whether a request is released");
    if (group != nullptr) {
      demand_equal(group->first, row.first, "the first id of a request");
      demand_equal(group->leader, row.leader, "the leader of a request");
      demand_equal(group->scheduled, row.scheduled, "whether a request was in a step");
      demand_equal(group->n_left, static_cast<std::int32_t>(row.sequences.size()),
                   "the sequences left of a request");
    }
    for (const sequence_row& one : row.sequences) {
      const auto* is = groups_.find_sequence(one.id);
      demand(is != nullptr, "a sequence is there");
      demand_equal(is->request, row.id, "the request of a sequence");
      demand_equal(is->choice, one.choice, "the choice of a sequence");
      demand_equal(is->spec.seed, one.seed, "the seed of a sequence");
      demand(is->spec.prompt_logprobs < 0 || one.choice == 0, "who scores the prompt");
      demand_equal(!is->blocks.empty(), one.has_blocks, "whether a sequence has blocks");
      demand_equal(is->n_inserted, one.has_blocks ? 1 : 0, "blocks that count as inserted");
      const auto n = static_cast<std::int32_t>(one.tokens.size());
      demand_equal(is->n_known(), n, "the tokens that are known");
      for (const std::int32_t first : {0, n / 2, n - 1, n})
        demand(is->known_tokens(first, n) ==
                   std::vector<std::int32_t>(one.tokens.begin() + first, one.tokens.end()),
               "the known tokens");
    }
  }

  sequence_groups groups_;
  std::vector<request_row> rows_;
  request_id last_request_ = 0;
  sequence_id next_id_ = 1;
};

void play_steps(const operations& sequence) {
  step_pipeline pipeline;
  std::deque<step_plan_ptr> sent;
  std::vector<sequence_id> closes;
  std::optional<std::uint64_t> generation;
  std::uint64_t number = 0, last_generation = 0;
  for (const operation& op : sequence) {
    switch (op.kind % 8) {
    case 0:
      pipeline.executor_lost();
      sent.clear();
      closes.clear();
      generation.reset();
      break;
    case 1:
      if (generation) break;
      generation = last_generation += op.a % 3;
      pipeline.executor_ready(*generation);
      break;
    case 2:
      pipeline.close(op.a % 9);
      closes.push_back(op.a % 9);
      break;
    case 3:
    case 4: {
      demand_equal(pipeline.has_room(), generation.has_value() && sent.size() < 2,
                   "whether there is room");
      if (!pipeline.has_room()) break;
      step_plan plan;
      plan.blocks = {static_cast<std::int32_t>(op.a)};
      sent.push_back(pipeline.send(plan));
      demand(sent.back()->generation == *generation && sent.back()->number == ++number,
             "a plan's numbers");
      demand(sent.back()->closes == closes && sent.back()->blocks == plan.blocks, "what it says");
      closes.clear();
      break;
    }
    default: {
      step_result result;
      result.generation = op.b % 4 == 0 ? last_generation + 1 + op.a % 2 : last_generation;
      result.number = sent.empty() ? op.a : sent.front()->number;
      const bool is_of_it = generation == result.generation && !sent.empty();
      const auto plan = pipeline.take(result);
      demand(plan == (is_of_it ? sent.front() : nullptr), "the plan that a result answers");
      if (is_of_it) sent.pop_front();
    }
    }
    demand_equal(pipeline.has_executor(), generation.has_value(), "whether there is an executor");
    // Without an executor there is no generation; no result has the number ~0.
    demand_equal(pipeline.generation(), generation.value_or(~std::uint64_t{0}), "the epoch");
    demand(pipeline.oldest() == (sent.empty() ? nullptr : sent.front()), "the oldest plan");
  }
}

} // namespace

TEST_CASE("requests wait, run and pause as in a plain list of their sequences") {
  CHECK(first_failure({.cases = 1000, .long_cases = 50'000}, [](const operations& sequence) {
          both groups;
          for (const operation& op : sequence)
            groups.apply(op);
          groups.end();
        }) == "");
}

TEST_CASE("steps come back in the order of a plain list of them") {
  CHECK(first_failure({.cases = 1000, .long_cases = 50'000}, play_steps) == "");
}
