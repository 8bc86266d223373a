#include "tools/twill-bench/cache_command.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "config/base/units.hpp"
#include "tools/common/scratch_folder.hpp"
#include "tools/twill-bench/cache/local_engine.hpp"

namespace twill::bench {
namespace {

struct cache_arguments {
  std::string model, compute = "auto", disk_dir;
  std::int32_t conversations = 8, tokens = 1200, requests = 32, own_tokens = 20, output = 4;
  std::int32_t rounds = 3;
  std::int64_t kv_mib = 56;
};

double median(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const std::size_t n = seconds.size();
  return (seconds[n / 2] + seconds[(n - 1) / 2]) / 2;
}

config::options options_of(const cache_arguments& a) {
  config::options o;
  o.model.path = a.model;
  o.model.compute = a.compute;
  return o;
}

/// One conversation after the other, of which the device holds a few, then each of the first half
/// once more.
void measure_returning(const cache_arguments& a, const char* tier, const config::options& options) {
  local_engine engine(options);
  std::vector<double> first, back;
  std::int64_t cached = 0;
  for (std::int32_t who = 0; who < a.conversations; ++who)
    first.push_back(engine.ask({tokens_of(who, a.tokens)}, a.output).front().first_token_s);
  const std::int32_t n_back = std::max(a.conversations / 2, 1);
  for (std::int32_t who = 0; who < n_back; ++who) {
    const auto answer = engine.ask({tokens_of(who, a.tokens)}, a.output).front();
    back.push_back(answer.first_token_s);
    cached += answer.cached_tokens;
  }
  std::printf("  %-5s first turn %7.3f s  returning %7.3f s (medians)  %5.1f %% of tokens cached\n",
              tier, median(first), median(back),
              100.0 * static_cast<double>(cached) / (double{1} * n_back * a.tokens));
  std::fflush(stdout);
}

int run_returning(const cache_arguments& a) {
  const tools::scratch_folder scratch(std::filesystem::temp_directory_path());
  config::options off = options_of(a);
  off.kv.memory_bytes = a.kv_mib * mib;
  config::options host = off, disk = off;
  host.kv.host_memory_bytes = disk.kv.disk_memory_bytes = 16 * off.kv.memory_bytes;
  disk.kv.disk_dir = a.disk_dir.empty() ? (scratch.path() / "kv").string() : a.disk_dir;
  for (std::int32_t round = 1; round <= a.rounds; ++round) {
    std::printf("round %d: %d conversations of %d tokens, %lld MiB of KV on the device\n", round,
                a.conversations, a.tokens, static_cast<long long>(a.kv_mib));
    measure_returning(a, "off", off);
    measure_returning(a, "host", host);
    measure_returning(a, "disk", disk);
  }
  return 0;
}

/// Requests that come at once and whose prompts begin with the same tokens, which one request
/// before them has brought.
void measure_shared(const cache_arguments& a, const char* name, bool prefix_cache) {
  config::options options = options_of(a);
  options.kv.prefix_cache = prefix_cache;
  local_engine engine(options);
  std::vector<std::vector<std::int32_t>> prompts;
  for (std::int32_t i = 0; i < a.requests; ++i) {
    auto prompt = tokens_of(0, a.tokens);
    const auto own = tokens_of(i + 1, a.own_tokens);
    prompt.insert(prompt.end(), own.begin(), own.end());
    prompts.push_back(std::move(prompt));
  }
  engine.ask({tokens_of(0, a.tokens)}, 1);
  std::vector<double> first;
  std::int64_t cached = 0;
  for (const auto& answer : engine.ask(prompts, a.output)) {
    first.push_back(answer.first_token_s);
    cached += answer.cached_tokens;
  }
  const std::int64_t all = std::int64_t{a.requests} * (a.tokens + a.own_tokens);
  std::printf("  %-7s TTFT %7.3f s (median), %7.3f s (last)  prefill %lld of %lld tokens\n", name,
              median(first), *std::max_element(first.begin(), first.end()),
              static_cast<long long>(all - cached), static_cast<long long>(all));
  std::fflush(stdout);
}

int run_shared(const cache_arguments& a) {
  for (std::int32_t round = 1; round <= a.rounds; ++round) {
    std::printf("round %d: %d requests at once, %d shared tokens and %d of their own\n", round,
                a.requests, a.tokens, a.own_tokens);
    measure_shared(a, "without", false);
    measure_shared(a, "with", true);
  }
  return 0;
}

void add_common(CLI::App& command, cache_arguments& a) {
  command.add_option("--model", a.model, "The model: a file, a folder or dummy:PRESET.")
      ->required();
  command.add_option("--compute", a.compute, "The compute type: auto, f32, bf16, int8 or w8a8.");
  command.add_option("--rounds", a.rounds, "How often each case is measured, by turns (3).")
      ->check(CLI::Range(1, 1000));
  command.add_option("--output-len", a.output, "The tokens that each request draws (4).")
      ->check(CLI::Range(1, 4096));
}

} // namespace

void add_cache_commands(CLI::App& app, int& exit_code) {
  auto a = std::make_shared<cache_arguments>();
  CLI::App* returning = app.add_subcommand(
      "returning", "Times the first token of conversations that come back when the device holds "
                   "others: with tiers of KV off, with host memory, and with a disk.");
  add_common(*returning, *a);
  returning->add_option("--tokens", a->tokens, "The tokens of a conversation (1200).")
      ->check(CLI::Range(1, 1 << 20));
  returning->add_option("--conversations", a->conversations, "The number of conversations (8).")
      ->check(CLI::Range(1, 100000));
  returning->add_option("--kv-mib", a->kv_mib, "The MiB of KV on the device (56).")
      ->check(CLI::Range(1, 1 << 20));
  returning->add_option("--disk-dir", a->disk_dir,
                        "The folder of the disk tier; without it, a temporary one.");
  returning->callback([a, &exit_code] { exit_code = run_returning(*a); });

  auto b = std::make_shared<cache_arguments>();
  b->tokens = 1000;
  CLI::App* shared = app.add_subcommand(
      "shared-prefix", "Times the first tokens of requests that come at once and share the "
                       "beginning of their prompts, without and with the prefix cache.");
  add_common(*shared, *b);
  shared->add_option("--tokens", b->tokens, "The tokens that all prompts share (1000).")
      ->check(CLI::Range(1, 1 << 20));
  shared->add_option("--own-tokens", b->own_tokens, "The tokens of each prompt after those (20).")
      ->check(CLI::Range(1, 1 << 20));
  shared->add_option("--requests", b->requests, "The requests that come at once (32).")
      ->check(CLI::Range(1, 4096));
  shared->callback([b, &exit_code] { exit_code = run_shared(*b); });
}

} // namespace twill::bench
