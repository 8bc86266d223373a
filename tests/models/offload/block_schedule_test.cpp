// block_schedule decides the order in which the micro-batches of an offline job pass through layers
// and tokens. It is tested over random shapes. The checker of schedules is tested with orders that
// are broken in every way.
#include <algorithm>
#include <random>
#include <vector>

#include "models/offload/plan/block_schedule.hpp"
#include "tests/catch.hpp"

using namespace twill::models::offload;

namespace {

using generator = std::mt19937;

std::int32_t pick(generator& rng, std::int32_t low, std::int32_t high) {
  return std::uniform_int_distribution<std::int32_t>(low, high)(rng);
}

schedule_shape any_shape(generator& rng) {
  schedule_shape shape;
  shape.order = pick(rng, 0, 1) == 0 ? search_order::zigzag : search_order::diagonal;
  shape.n_layers = pick(rng, 1, 6);
  shape.max_alive = pick(rng, 1, 5);
  shape.stagger = pick(rng, 1, 4);
  shape.n_steps.resize(static_cast<std::size_t>(pick(rng, 1, 9)));
  for (auto& n : shape.n_steps)
    n = pick(rng, 1, 8);
  return shape;
}

schedule_shape equal_shape(search_order order, std::int32_t n_batches, std::int32_t n_steps,
                           std::int32_t n_layers, std::int32_t max_alive) {
  return {order, n_layers, max_alive, 1, std::vector<std::int32_t>(n_batches, n_steps)};
}

bool has(const std::optional<std::string>& violation, const std::string& words) {
  return violation && violation->find(words) != std::string::npos;
}

} // namespace

TEST_CASE("every schedule of random shapes is proved by the checker") {
  generator rng(7);
  for (int i = 0; i < 2000; ++i) {
    const auto shape = any_shape(rng);
    const auto tasks = all_tasks(shape);
    const auto violation = check_schedule(tasks, shape);
    INFO(violation.value_or(""));
    REQUIRE(!violation);
    CHECK(layer_fetches(tasks) == layer_fetches(shape));
  }
}

TEST_CASE("a round fetches each layer once for all alive micro-batches") {
  generator rng(8);
  for (int i = 0; i < 300; ++i) {
    auto shape = any_shape(rng);
    shape.n_layers = std::max(shape.n_layers, 2); // a single layer is fetched once for all rounds
    schedule_cursor cursor(shape);
    while (cursor.next()) {
    }
    CHECK(layer_fetches(shape) == cursor.rounds() * shape.n_layers);
  }
}

TEST_CASE("zig-zag goes token, layer, micro-batch") {
  const auto tasks = all_tasks(equal_shape(search_order::zigzag, 3, 2, 2, 3));
  std::vector<schedule_task> expected;
  for (std::int32_t t = 0; t < 2; ++t)
    for (std::int32_t l = 0; l < 2; ++l)
      for (std::int32_t b = 0; b < 3; ++b)
        expected.push_back({t, l, b});
  CHECK(tasks == expected);
}

TEST_CASE("a second block of equal micro-batches follows the first whole") {
  const auto tasks = all_tasks(equal_shape(search_order::zigzag, 4, 3, 2, 2));
  for (std::size_t i = 0; i < tasks.size(); ++i)
    CHECK((tasks[i].batch >= 2) == (i >= tasks.size() / 2));
}

TEST_CASE("a diagonal holds micro-batches at different tokens") {
  const auto tasks = all_tasks(equal_shape(search_order::diagonal, 3, 3, 1, 3));
  // The warm-up triangle, one full diagonal, and the triangle that remains.
  const std::vector<schedule_task> expected{{0, 0, 0}, {1, 0, 0}, {0, 0, 1}, {2, 0, 0}, {1, 0, 1},
                                            {0, 0, 2}, {2, 0, 1}, {1, 0, 2}, {2, 0, 2}};
  CHECK(tasks == expected);
}

TEST_CASE("a diagonal over a queue stays full after its warm-up") {
  const std::int32_t n_steps = 8, max_alive = 4, n_batches = 20;
  auto shape = equal_shape(search_order::diagonal, n_batches, n_steps, 2, max_alive);
  shape.stagger = even_stagger(n_steps, max_alive);
  CHECK(shape.stagger == 2);
  schedule_cursor cursor(shape);
  const std::int64_t warm_up = shape.stagger * (max_alive - 1);
  while (const auto next = cursor.next()) {
    const bool draining = next->batch == n_batches - 1;
    if (draining) break;
    if (cursor.rounds() <= warm_up) continue;
    CHECK(cursor.alive() == static_cast<std::size_t>(max_alive));
  }
  // A new micro-batch begins every `stagger` rounds; the last one runs for `n_steps` rounds.
  CHECK(layer_fetches(shape) == 2 * (shape.stagger * (n_batches - 1) + n_steps));
}

TEST_CASE("a micro-batch that ends early leaves and a waiting one enters") {
  const schedule_shape shape{search_order::zigzag, 2, 2, 1, {1, 3, 2}};
  const auto tasks = all_tasks(shape);
  const std::vector<schedule_task> expected{{0, 0, 0}, {0, 0, 1}, {0, 1, 0}, {0, 1, 1},
                                            {1, 0, 1}, {0, 0, 2}, {1, 1, 1}, {0, 1, 2},
                                            {2, 0, 1}, {1, 0, 2}, {2, 1, 1}, {1, 1, 2}};
  CHECK(tasks == expected);
}

TEST_CASE("micro-batches leave and come while the cursor runs") {
  generator rng(9);
  for (int i = 0; i < 300; ++i) {
    auto shape = any_shape(rng);
    schedule_cursor cursor(shape);
    std::vector<schedule_task> tasks;
    int added = 0;
    while (true) {
      const auto next = cursor.next();
      if (!next && added == 3) break;
      if (next) tasks.push_back(*next);
      if (!next || (added < 3 && pick(rng, 0, 20) == 0)) {
        shape.n_steps.push_back(pick(rng, 1, 5));
        CHECK(cursor.add(shape.n_steps.back()) + 1 == std::int32_t(shape.n_steps.size()));
        ++added;
      }
      if (next && pick(rng, 0, 15) == 0) {
        cursor.leave(next->batch);
        shape.n_steps[std::size_t(next->batch)] = next->token + 1;
      }
    }
    const auto violation = check_schedule(tasks, shape);
    INFO(violation.value_or(""));
    CHECK(!violation);
  }
}

TEST_CASE("one that left while it waited never runs") {
  schedule_cursor cursor(equal_shape(search_order::zigzag, 2, 2, 1, 1));
  cursor.leave(1);
  cursor.leave(7);
  CHECK(cursor.next() == schedule_task{0, 0, 0});
  CHECK(cursor.next() == schedule_task{1, 0, 0});
  CHECK(!cursor.next());
}

TEST_CASE("a copy of a cursor runs ahead without moving it") {
  schedule_cursor cursor(equal_shape(search_order::diagonal, 3, 3, 2, 2));
  cursor.next();
  schedule_cursor ahead = cursor;
  std::vector<schedule_task> seen, later;
  while (const auto next = ahead.next())
    seen.push_back(*next);
  while (const auto next = cursor.next())
    later.push_back(*next);
  CHECK(seen == later);
}

TEST_CASE("the checker rejects every broken order") {
  generator rng(10);
  for (int i = 0; i < 500; ++i) {
    auto shape = any_shape(rng);
    const auto good = all_tasks(shape);
    const auto at = static_cast<std::size_t>(pick(rng, 0, std::int32_t(good.size()) - 1));
    INFO("at " << at);
    auto broken = good;

    broken.erase(broken.begin() + std::ptrdiff_t(at)); // drop
    CHECK(check_schedule(broken, shape));

    broken = good; // duplicate
    broken.insert(broken.begin() +
                      std::ptrdiff_t(pick(rng, std::int32_t(at), std::int32_t(good.size()))),
                  good[at]);
    CHECK(check_schedule(broken, shape));

    broken = good; // swap with the next task of the same micro-batch
    const auto same =
        std::find_if(good.begin() + std::ptrdiff_t(at) + 1, good.end(),
                     [&](const schedule_task& s) { return s.batch == good[at].batch; });
    if (same != good.end()) {
      std::swap(broken[at], broken[std::size_t(same - good.begin())]);
      CHECK(has(check_schedule(broken, shape), "which was not computed"));
    }

    broken = good; // another number in one field
    const int field = pick(rng, 0, 2);
    (field == 0   ? broken[at].token
     : field == 1 ? broken[at].layer
                  : broken[at].batch) += pick(rng, 0, 1) == 0 ? 1 : -1;
    CHECK(check_schedule(broken, shape));

    broken = good; // reversed
    std::reverse(broken.begin(), broken.end());
    if (broken.front().token + broken.front().layer > 0) CHECK(check_schedule(broken, shape));

    broken = good; // cut
    broken.resize(at);
    CHECK(has(check_schedule(broken, shape), "never computed"));
  }
}

TEST_CASE("the checker names what is wrong") {
  const schedule_shape shape{search_order::zigzag, 2, 1, 1, {2, 1}};
  const std::vector<schedule_task> good{{0, 0, 0}, {0, 1, 0}, {1, 0, 0},
                                        {1, 1, 0}, {0, 0, 1}, {0, 1, 1}};
  CHECK(!check_schedule(good, shape));
  CHECK(has(check_schedule(std::vector<schedule_task>{{0, 1, 0}}, shape),
            "task 0, (token 0, layer 1, batch 0): it needs (token 0, layer 0, batch 0)"));
  CHECK(has(check_schedule(std::vector<schedule_task>{{0, 0, 0}, {1, 0, 0}}, shape),
            "it needs (token 0, layer 1, batch 0), which was not computed"));
  CHECK(has(check_schedule(std::vector<schedule_task>{{0, 0, 0}, {0, 0, 0}}, shape),
            "computed before"));
  CHECK(has(check_schedule(std::vector<schedule_task>{{0, 0, 0}, {0, 0, 1}}, shape),
            "2 micro-batches are alive, at most 1 may be"));
  CHECK(has(check_schedule(std::vector<schedule_task>{{2, 0, 0}}, shape), "takes 2 steps"));
  CHECK(has(check_schedule(std::vector<schedule_task>{{0, 2, 0}}, shape), "there are 2 layers"));
  CHECK(has(check_schedule(std::vector<schedule_task>{{0, 0, 2}}, shape),
            "there are 2 micro-batches"));
  CHECK(has(check_schedule(std::vector<schedule_task>{}, shape),
            "the end: (token 0, layer 0, batch 0) was never computed"));
}

TEST_CASE("a shape says what is wrong with it") {
  CHECK(problem_of({search_order::zigzag, 0, 1, 1, {1}}) == "n_layers must be at least 1, got 0");
  CHECK(problem_of({search_order::zigzag, 1, 0, 1, {1}}) == "max_alive must be at least 1, got 0");
  CHECK(problem_of({search_order::diagonal, 1, 1, 0, {1}}) == "stagger must be at least 1, got 0");
  CHECK(problem_of({search_order::zigzag, 1, 1, 1, {1, -2}}) ==
        "n_steps[1] must be at least 1, got -2");
  CHECK(search_order_named("diagonal") == search_order::diagonal);
  CHECK(!search_order_named("snake"));
}
