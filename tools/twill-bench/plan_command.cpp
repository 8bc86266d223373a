#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "tools/twill-bench/commands.hpp"
#include "tools/twill-bench/plan/actor_load.hpp"
#include "tools/twill-bench/plan/load_batcher.hpp"
#include "tools/twill-bench/plan/request_load.hpp"

namespace twill::bench {
namespace {

struct plan_arguments {
  load_settings settings;
  std::int32_t steps = 2000;
  bool actors = false;
  std::int32_t step_ms = 2;
};

/// The number of steps after which the distribution of sequence lengths no longer changes.
std::int32_t warm_steps(const load_settings& s) {
  return 2 * s.running * s.prompt_tokens / 512 + 200;
}

void print_row(const char* name, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  double sum = 0;
  for (double s : seconds)
    sum += s;
  std::printf("  %-10s %8.1f %8.1f %8.1f\n", name, 1e6 * sum / static_cast<double>(seconds.size()),
              1e6 * seconds[seconds.size() / 2], 1e6 * seconds[seconds.size() * 99 / 100]);
}

void measure(const plan_arguments& a, bool few_blocks) {
  load_settings settings = a.settings;
  settings.few_blocks = few_blocks;
  load_batcher batcher(settings);
  const std::int32_t warm = warm_steps(settings);
  for (std::int32_t i = 0; i < warm; ++i)
    batcher.step();
  std::vector<double> plan, results, allocator, all;
  for (std::int32_t i = 0; i < a.steps; ++i) {
    const plan_seconds spent = batcher.step();
    plan.push_back(spent.plan);
    results.push_back(spent.results);
    allocator.push_back(spent.allocator);
    all.push_back(spent.plan + spent.results + spent.allocator);
  }
  std::printf("%s: %d run, %d wait\n",
              few_blocks ? "KV blocks are short" : "the running set is full", batcher.running(),
              batcher.waiting());
  std::printf("  us a step      mean   median      p99\n");
  print_row("plan", plan);
  print_row("results", results);
  print_row("allocator", allocator);
  print_row("all", all);
}

/// The value that `share` of the values do not exceed, in microseconds. Sorts the values.
double us_at(std::vector<double>& seconds, double share) {
  std::sort(seconds.begin(), seconds.end());
  const auto last = static_cast<double>(seconds.size() - 1);
  return 1e6 * seconds[static_cast<std::size_t>(share * last)];
}

void print_actor_row(const char* name, const plan_arguments& a, const load_settings& load,
                     std::int32_t warm) {
  actor_load_times t = run_actor_load({load, std::chrono::milliseconds(a.step_ms), warm, a.steps});
  double sum = 0;
  for (double s : t.between)
    sum += s;
  std::printf("  %-20s %6d %6d %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f\n", name, t.running, t.waiting,
              us_at(t.to_plan, 0.5), us_at(t.to_plan, 0.99), us_at(t.to_plan, 1),
              us_at(t.waits, 0.5), us_at(t.waits, 0.99),
              1e6 * sum / static_cast<double>(t.between.size()));
  std::fflush(stdout);
}

/// A load in which no sequence ends before all steps are measured.
void measure_decode(const plan_arguments& a, std::int32_t running) {
  load_settings load = a.settings;
  load.queued = 0;
  load.running = running;
  const std::int32_t warm = running * load.prompt_tokens / 4096 + 200;
  load.output_tokens = 2 * (warm + a.steps + 10); // the shortest output has half as many
  print_actor_row("decode, no end", a, load, warm);
}

void measure_replaced(const char* name, const plan_arguments& a, std::int32_t running,
                      std::int32_t queued, bool few_blocks) {
  load_settings load = a.settings;
  load.running = running;
  load.queued = queued;
  load.few_blocks = few_blocks;
  print_actor_row(name, a, load, warm_steps(load));
}

int measure_actors(const plan_arguments& a) {
  const std::int32_t all = a.settings.running, few = std::min(all, 32);
  std::printf(
      "batcher and KV allocator as actors, an executor whose steps take %d ms\n"
      "  result to plan: from the executor's result to the arrival of the next plan\n"
      "  allocator: the part of it in which a request to the allocator is outstanding that is\n"
      "  answered before the plan arrives, from its enqueueing to the handling of the answer\n"
      "  step: the mean time between two plans\n"
      "                                            result to plan         allocator       step\n"
      "  us                      run   wait   median      p99      max   median      p99     "
      "mean\n",
      a.step_ms);
  measure_decode(a, 1);
  measure_decode(a, all);
  measure_replaced("ends are replaced", a, few, 0, false);
  measure_replaced("ends are replaced", a, all, 0, false);
  measure_replaced("a queue", a, all, a.settings.queued, false);
  measure_replaced("KV blocks are short", a, all, a.settings.queued, true);
  return 0;
}

int measure(const plan_arguments& a) {
  if (a.actors) return measure_actors(a);
  measure(a, false);
  measure(a, true);
  return 0;
}

} // namespace

void add_plan_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("plan", "Times the planning of steps, without a model");
  auto a = std::make_shared<plan_arguments>();
  command->add_option("--queued", a->settings.queued, "Requests that wait (10000)")
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--running", a->settings.running, "Requests that run (1000)")
      ->check(CLI::Range(1, 65536));
  command->add_option("--prompt", a->settings.prompt_tokens, "Tokens of a prompt (512)")
      ->check(CLI::Range(1, 65536));
  command
      ->add_option("--output", a->settings.output_tokens, "Tokens of an output, on average (256)")
      ->check(CLI::Range(2, 65536));
  command->add_option("--steps", a->steps, "Steps that are timed (2000)")
      ->check(CLI::Range(100, 1'000'000));
  command->add_flag_callback(
      "--no-cache", [a] { a->settings.prefix_cache = false; }, "Without the prefix cache");
  CLI::Option* actors = command->add_flag("--actors", a->actors,
                                          "Run the batcher and the KV allocator as actors, and "
                                          "time from a step's result to the arrival "
                                          "of the next plan at an executor that computes nothing");
  command
      ->add_option("--step-ms", a->step_ms,
                   "With --actors: how long a step takes, in ms; 0: no time (2)")
      ->check(CLI::Range(0, 10'000))
      ->needs(actors);
  command->callback([a, &exit_code] { exit_code = measure(*a); });
}

} // namespace twill::bench
