#include "models/offload/plan/block_schedule.hpp"

#include <algorithm>
#include <utility>

#include "config/base/assert.hpp"

namespace twill::models::offload {

const char* name_of(search_order order) {
  return order == search_order::zigzag ? "zigzag" : "diagonal";
}

std::optional<search_order> search_order_named(const std::string& name) {
  for (const search_order order : {search_order::zigzag, search_order::diagonal})
    if (name == name_of(order)) return order;
  return std::nullopt;
}

std::int32_t even_stagger(std::int32_t n_steps, std::int32_t max_alive) {
  return std::max((n_steps + max_alive - 1) / max_alive, 1);
}

std::optional<std::string> problem_of(const schedule_shape& shape) {
  const auto least_1 = [](const std::string& field, std::int32_t value) {
    return field + " must be at least 1, got " + std::to_string(value);
  };
  if (shape.n_layers < 1) return least_1("n_layers", shape.n_layers);
  if (shape.max_alive < 1) return least_1("max_alive", shape.max_alive);
  if (shape.stagger < 1) return least_1("stagger", shape.stagger);
  for (std::size_t b = 0; b < shape.n_steps.size(); ++b)
    if (shape.n_steps[b] < 1)
      return least_1("n_steps[" + std::to_string(b) + "]", shape.n_steps[b]);
  return std::nullopt;
}

schedule_cursor::schedule_cursor(const schedule_shape& shape)
    : order_(shape.order), n_layers_(shape.n_layers),
      max_alive_(static_cast<std::size_t>(shape.max_alive)), stagger_(shape.stagger) {
  TWILL_ASSERT(!problem_of(shape), "a schedule needs a shape without problems");
  for (const std::int32_t n : shape.n_steps)
    add(n);
}

std::int32_t schedule_cursor::add(std::int32_t n_steps) {
  TWILL_ASSERT(n_steps >= 1, "a micro-batch takes at least one step");
  waiting_.push_back({n_batches_, 0, n_steps});
  return n_batches_++;
}

void schedule_cursor::leave(std::int32_t batch) {
  const auto is_it = [&](const member& m) { return m.batch == batch; };
  std::erase_if(waiting_, is_it);
  const auto it = std::find_if(alive_.begin(), alive_.end(), is_it);
  if (it != alive_.end()) it->n_steps = std::min(it->n_steps, it->token + 1);
}

std::optional<schedule_task> schedule_cursor::next() {
  if (at_ == alive_.size() && !alive_.empty()) {
    at_ = 0;
    if (++layer_ == n_layers_) end_round();
  }
  if (alive_.empty()) admit();
  if (alive_.empty()) return std::nullopt;
  const member& m = alive_[at_++];
  return schedule_task{m.token, layer_, m.batch};
}

void schedule_cursor::end_round() {
  layer_ = 0;
  for (member& m : alive_)
    ++m.token;
  std::erase_if(alive_, [](const member& m) { return m.token >= m.n_steps; });
  admit();
}

void schedule_cursor::admit() {
  while (alive_.size() < max_alive_ && !waiting_.empty()) {
    // In diagonal order the next micro-batch must wait until round next_entry_. A round without
    // micro-batches would never end, so if none is alive (has entered and not finished), a waiting
    // micro-batch enters before that round.
    const bool early = order_ == search_order::diagonal && rounds_ < next_entry_;
    if (early && !alive_.empty()) break;
    alive_.push_back(waiting_.front());
    waiting_.pop_front();
    next_entry_ = rounds_ + stagger_;
  }
  if (!alive_.empty()) ++rounds_;
}

std::vector<schedule_task> all_tasks(const schedule_shape& shape) {
  std::vector<schedule_task> out;
  schedule_cursor cursor(shape);
  while (const auto next = cursor.next())
    out.push_back(*next);
  return out;
}

std::int64_t layer_fetches(std::span<const schedule_task> tasks) {
  std::int64_t runs = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i)
    if (i == 0 || tasks[i].layer != tasks[i - 1].layer) ++runs;
  return runs;
}

std::int64_t layer_fetches(const schedule_shape& shape) {
  std::int64_t runs = 0;
  std::int32_t last = -1;
  schedule_cursor cursor(shape);
  while (const auto next = cursor.next())
    if (std::exchange(last, next->layer) != next->layer) ++runs;
  return runs;
}

namespace {

std::string text_of(const schedule_task& s) {
  return "(token " + std::to_string(s.token) + ", layer " + std::to_string(s.layer) + ", batch " +
         std::to_string(s.batch) + ")";
}

} // namespace

schedule_checker::schedule_checker(const schedule_shape& shape)
    : shape_(shape), done_(shape.n_steps.size(), 0), violation_(problem_of(shape)) {}

const std::optional<std::string>& schedule_checker::feed(const schedule_task& next) {
  if (violation_) return violation_;
  std::string wrong = judge(next);
  if (!wrong.empty())
    violation_ = "task " + std::to_string(fed_) + ", " + text_of(next) + ": " + wrong;
  ++fed_;
  return violation_;
}

std::string schedule_checker::judge(const schedule_task& next) {
  if (next.batch < 0 || static_cast<std::size_t>(next.batch) >= done_.size())
    return "there are " + std::to_string(done_.size()) + " micro-batches";
  if (next.layer < 0 || next.layer >= shape_.n_layers)
    return "there are " + std::to_string(shape_.n_layers) + " layers";
  const std::int32_t n_steps = shape_.n_steps[static_cast<std::size_t>(next.batch)];
  if (next.token < 0 || next.token >= n_steps)
    return "the micro-batch takes " + std::to_string(n_steps) + " steps";

  // The tasks of one micro-batch have only one valid order, so the number of finished tasks
  // describes its state.
  std::int64_t& done = done_[static_cast<std::size_t>(next.batch)];
  const std::int64_t place = std::int64_t{next.token} * shape_.n_layers + next.layer;
  if (place < done) return "it was computed before";
  if (place > done) {
    const schedule_task lacks{next.layer > 0 ? next.token : next.token - 1,
                              next.layer > 0 ? next.layer - 1 : shape_.n_layers - 1, next.batch};
    return "it needs " + text_of(lacks) + ", which was not computed";
  }
  if (done == 0 && ++alive_ > shape_.max_alive)
    return std::to_string(alive_) + " micro-batches are alive, at most " +
           std::to_string(shape_.max_alive) + " may be";
  if (++done == std::int64_t{n_steps} * shape_.n_layers) --alive_;
  return {};
}

const std::optional<std::string>& schedule_checker::finish() {
  for (std::size_t b = 0; b < done_.size() && !violation_; ++b) {
    const std::int64_t done = done_[b];
    if (done == std::int64_t{shape_.n_steps[b]} * shape_.n_layers) continue;
    const schedule_task missing{static_cast<std::int32_t>(done / shape_.n_layers),
                                static_cast<std::int32_t>(done % shape_.n_layers),
                                static_cast<std::int32_t>(b)};
    violation_ = "the end: " + text_of(missing) + " was never computed";
  }
  return violation_;
}

std::optional<std::string> check_schedule(std::span<const schedule_task> tasks,
                                          const schedule_shape& shape) {
  schedule_checker checker(shape);
  for (const schedule_task& next : tasks)
    checker.feed(next);
  return checker.finish();
}

} // namespace twill::models::offload
