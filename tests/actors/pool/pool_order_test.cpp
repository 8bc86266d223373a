// step_turns runs the steps of several models, and job_thread runs jobs, in the order in which they
// were requested. add_tenants() sums the tenants' figures of several engines, with the same sums in
// whatever order the engines are added.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "actors/pool/job_thread.hpp"
#include "actors/pool/step_turns.hpp"
#include "actors/pool/sum_stats.hpp"
#include "tests/actors/scripted_runner.hpp"
#include "tests/catch.hpp"
#include "tests/support/operations.hpp"

using namespace twill::actors;
using namespace twill::test;

namespace {

void demand_soon(const std::function<bool()>& holds, const char* what) {
  demand(scripted::eventually(holds), what);
}

/// Models whose steps begin and end when the test says so, each on a thread of its own.
class models {
public:
  ~models() {
    while (!order_.empty())
      leave();
    for (auto& thread : threads_)
      if (thread.joinable()) thread.join();
  }

  void enter(std::size_t m) {
    if (std::find(order_.begin(), order_.end(), m) != order_.end()) return;
    const auto n = turns_.n_under_way();
    if (threads_[m].joinable()) threads_[m].join();
    threads_[m] = std::thread([this, m] {
      turns_.enter();
      inside_ = static_cast<int>(m);
      while (inside_ >= 0)
        std::this_thread::yield();
      turns_.leave();
    });
    order_.push_back(m);
    demand_soon([&] { return turns_.n_under_way() == n + 1; }, "a step is asked for");
    check();
  }
  void leave() {
    if (order_.empty()) return;
    demand_soon([&] { return inside_ == static_cast<int>(order_.front()); }, "a step begins");
    order_.pop_front();
    inside_ = -1;
    demand_soon([&] { return turns_.n_under_way() == order_.size(); }, "a step ends");
    check();
  }

private:
  void check() {
    if (order_.empty()) return;
    demand_soon([&] { return inside_ >= 0; }, "no core is idle while a step waits");
    demand_equal(inside_.load(), static_cast<int>(order_.front()), "whose step runs");
  }

  step_turns turns_;
  std::deque<std::size_t> order_; ///< the model whose step runs, and those that wait behind it
  std::atomic<int> inside_{-1};
  std::array<std::thread, 4> threads_;
};

void play_jobs(const operations& sequence) {
  std::vector<std::size_t> done, expected;
  std::atomic<std::size_t> n_done{0};
  job_thread thread;
  std::size_t n_short = 0;
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    // Some jobs fail at first for lack of memory.
    const int fails = sequence[i].kind % 16 == 0 && n_short++ < 2 ? 1 + sequence[i].a % 2 : 0;
    expected.push_back(i);
    thread.give([&, i, left = std::make_shared<int>(fails)] {
      if ((*left)-- > 0) throw std::bad_alloc();
      done.push_back(i);
      ++n_done;
    });
  }
  demand_soon([&] { return n_done == expected.size(); }, "every job is done");
  demand(!thread.stopping(), "nobody has stopped it");
  const auto alive = std::make_shared<int>(0);
  thread.give([alive] {});
  thread.give([alive] {});
  demand_soon([&] { return alive.use_count() == 1; }, "a job that was done holds nothing");
  thread.stop();
  thread.give([&] { done.push_back(999); });
  demand(thread.stopping() && done == expected, "jobs are done in their order, each once");
}

std::vector<tenant_stats> stats_of(const operation& op) {
  std::vector<tenant_stats> out;
  for (std::uint32_t i = 0; i < 1 + op.a % 3; ++i) {
    tenant_stats one;
    one.tenant = std::string(1, static_cast<char>('a' + (op.a / 3 + i) % 3));
    one.model = std::string(1, static_cast<char>('m' + (op.b + i) % 2));
    one.requests_waiting = op.b % 5;
    one.requests_running = op.b % 7;
    one.prompt_tokens = op.c % 11;
    one.cached_prompt_tokens = op.c % 5;
    one.generation_tokens = op.c % 13;
    one.finished[op.kind % 2 == 0 ? "stop" : "length"] = op.kind % 4;
    std::uint64_t n = op.kind;
    for (auto* h : {&one.time_to_first_token_seconds, &one.time_per_output_token_seconds,
                    &one.e2e_request_latency_seconds, &one.request_queue_time_seconds}) {
      n = n * 31 % 1009;
      *h = {{1, 2}, {n % 3, n % 4, n % 5}, static_cast<double>(n % 8)};
    }
    out.push_back(one);
  }
  return out;
}

/// Every figure of a tenant with a model, by its name.
std::map<std::string, double> figures_of(const std::vector<tenant_stats>& all) {
  std::map<std::string, double> sums;
  for (const tenant_stats& one : all) {
    const std::string of = one.tenant + "/" + one.model + " ";
    sums[of + "waiting"] += static_cast<double>(one.requests_waiting);
    sums[of + "running"] += static_cast<double>(one.requests_running);
    sums[of + "prompt"] += static_cast<double>(one.prompt_tokens);
    sums[of + "cached"] += static_cast<double>(one.cached_prompt_tokens);
    sums[of + "made"] += static_cast<double>(one.generation_tokens);
    for (const auto& [why, n] : one.finished)
      sums[of + why] += static_cast<double>(n);
    int number = 0;
    for (const auto* h : {&one.time_to_first_token_seconds, &one.time_per_output_token_seconds,
                          &one.e2e_request_latency_seconds, &one.request_queue_time_seconds}) {
      const std::string name = of + std::to_string(number++) + " ";
      sums[name + "sum"] += h->sum;
      for (std::size_t i = 0; i < h->counts.size(); ++i)
        sums[name + std::to_string(i)] += static_cast<double>(h->counts[i]);
    }
  }
  return sums;
}

} // namespace

TEST_CASE("steps of models run in the order of a plain queue", "[pool]") {
  CHECK(first_failure({.cases = 20, .long_cases = 1000, .most_operations = 30},
                      [](const operations& sequence) {
                        models all;
                        for (const operation& op : sequence)
                          op.kind % 2 == 0 ? all.enter(op.a % 4) : all.leave();
                      }) == "");
}

TEST_CASE("jobs are done in their order, each once", "[pool]") {
  CHECK(first_failure({.cases = 15, .long_cases = 500, .most_operations = 30}, play_jobs) == "");
}

TEST_CASE("figures of tenants are the sums of all entries", "[pool]") {
  CHECK(first_failure({.cases = 200, .long_cases = 10'000, .most_operations = 20},
                      [](const operations& sequence) {
                        std::vector<tenant_stats> sum, all;
                        for (const operation& op : sequence) {
                          // The stats of an engine have one entry for each tenant and model.
                          std::vector<tenant_stats> of_engine;
                          add_tenants(of_engine, stats_of(op));
                          add_tenants(sum, of_engine);
                          for (const auto& one : stats_of(op))
                            all.push_back(one);
                        }
                        demand(figures_of(sum) == figures_of(all), "the sums");
                        for (std::size_t i = 0; i < sum.size(); ++i)
                          for (std::size_t k = 0; k < i; ++k)
                            demand(sum[i].tenant != sum[k].tenant || sum[i].model != sum[k].model,
                                   "a tenant has two entries for a model");
                      }) == "");
}
