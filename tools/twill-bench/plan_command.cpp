#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "tools/twill-bench/commands.hpp"
#include "tools/twill-bench/plan/load_batcher.hpp"
#include "tools/twill-bench/plan/request_load.hpp"

namespace twill::bench {
namespace {

struct plan_arguments {
  load_settings settings;
  std::int32_t steps = 2000;
};

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
  const std::int32_t warm = 2 * settings.running * settings.prompt_tokens / 512 + 200;
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

int measure(const plan_arguments& a) {
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
  command->callback([a, &exit_code] { exit_code = measure(*a); });
}

} // namespace twill::bench
