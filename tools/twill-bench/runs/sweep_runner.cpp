#include "tools/twill-bench/runs/sweep_runner.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "tools/twill-bench/engine/load_run.hpp"
#include "tools/twill-bench/engine/text.hpp"
#include "tools/twill-bench/report/write_file.hpp"
#include "tools/twill-bench/runs/load_runner.hpp"
#include "tools/twill-bench/runs/sweep_file.hpp"
#include "tools/twill-bench/runs/time_left.hpp"

namespace twill::bench {
namespace {

/// Scrambles a seed, so that seeds that are close give unrelated ones (Steele, Lea and Flood 2014,
/// as in SplitMix64).
std::uint64_t stirred(std::uint64_t seed) {
  seed += 0x9e3779b97f4a7c15ull;
  seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9ull;
  seed = (seed ^ (seed >> 27)) * 0x94d049bb133111ebull;
  return seed ^ (seed >> 31);
}

class sweep_runner {
public:
  sweep_runner(sweep_order order, load_runner& runner) : order_(std::move(order)), runner_(runner) {
    order_.base.metric_percentiles = {99};
    order_.base.ignore_eos = order_.setup.ignore_eos;
    const load_run probe(order_.base, {});
    order_.base.model = order_.setup.model = probe.model().id;
    if (order_.setup.context_limit == 0)
      order_.setup.context_limit = probe.model().max_model_len.value_or(0);
    if (order_.setup.title.empty()) order_.setup.title = order_.setup.model;
    order_.setup.date = date_text();
    sweep_.setup = order_.setup;
    sweep_.cells =
        sweep_grid(order_.input_lengths, order_.output_lengths, order_.setup.context_limit);
    resume();
  }

  sweep run() {
    warm_up();
    for (std::size_t i = 0; i < sweep_.cells.size() && !runner_.interrupted(); ++i) {
      sweep_cell& cell = sweep_.cells[i];
      if (!cell.skipped.empty()) {
        std::fprintf(stderr, "%s skipped: %s\n", name(i).c_str(), cell.skipped.c_str());
        continue;
      }
      if (!cell.latency) cell.latency = measure(i, false);
      if (!cell.throughput && !runner_.interrupted()) cell.throughput = measure(i, true);
    }
    sweep_.interrupted = runner_.interrupted();
    save();
    return std::move(sweep_);
  }

private:
  /// Keeps the cells that an earlier run of this sweep has measured.
  void resume() {
    if (order_.fresh || !std::filesystem::exists(order_.state_path)) return;
    const sweep before = read_sweep(read_file(order_.state_path), order_.state_path);
    const std::string conflict = setup_conflict(before.setup, order_.setup);
    if (!conflict.empty())
      throw std::runtime_error(order_.state_path + " holds another sweep: " + conflict +
                               " (another --output-dir, or --fresh to start over)");
    std::size_t taken = 0;
    for (const sweep_cell& old : before.cells) {
      const auto same = std::find_if(sweep_.cells.begin(), sweep_.cells.end(), [&](const auto& c) {
        return c.input_tokens == old.input_tokens && c.output_tokens == old.output_tokens;
      });
      if (same == sweep_.cells.end()) {
        sweep_.cells.push_back(old); // cells measured with other lists of lengths are kept
        continue;
      }
      if (!same->skipped.empty()) continue;
      if (worth_keeping(old.latency)) same->latency = old.latency;
      if (worth_keeping(old.throughput)) same->throughput = old.throughput;
      taken += same->latency.has_value() + same->throughput.has_value();
    }
    std::sort(sweep_.cells.begin(), sweep_.cells.end(), [](const auto& a, const auto& b) {
      return std::pair(a.input_tokens, a.output_tokens) <
             std::pair(b.input_tokens, b.output_tokens);
    });
    sweep_.setup.date = before.setup.date;
    if (taken > 0) std::fprintf(stderr, "resuming: %zu phases were measured before\n", taken);
  }

  bool worth_keeping(const std::optional<run_figures>& old) const {
    return old && (old->completed > 0 || !order_.retry_failed);
  }

  std::string name(std::size_t i) const {
    const sweep_cell& cell = sweep_.cells[i];
    return "cell " + std::to_string(i + 1) + "/" + std::to_string(sweep_.cells.size()) + "  " +
           std::to_string(cell.input_tokens) + " in " + std::to_string(cell.output_tokens) + " out";
  }

  serve_options options_for(const sweep_cell& cell, bool throughput) const {
    serve_options out = order_.base;
    out.input_tokens = cell.input_tokens;
    out.output_tokens = cell.output_tokens;
    out.n_prompts =
        std::size_t(throughput ? order_.setup.throughput_requests : order_.setup.latency_requests);
    out.max_concurrency = throughput ? std::size_t(order_.setup.throughput_concurrency) : 1;
    out.n_warmups = 0;
    // Every phase (latency or throughput, for one pair of lengths) has different prompts, so that a
    // server with a prefix cache cannot reuse those of an earlier phase.
    out.seed = order_.setup.seed;
    for (const std::int32_t part :
         {cell.input_tokens, cell.output_tokens, std::int32_t(throughput)})
      out.seed = stirred(out.seed + std::uint64_t(part) + 1);
    return out;
  }

  void warm_up() {
    const auto next = std::find_if(sweep_.cells.begin(), sweep_.cells.end(),
                                   [](const sweep_cell& cell) { return !cell.done(); });
    if (next == sweep_.cells.end() || order_.base.n_warmups == 0) return;
    serve_options options = options_for(*next, false);
    options.seed = ~options.seed;
    options.n_warmups = order_.base.n_warmups;
    std::fprintf(stderr, "warming up\n");
    runner_.warm_up(options);
  }

  std::optional<run_figures> measure(std::size_t i, bool throughput) {
    const sweep_cell& cell = sweep_.cells[i];
    const std::string label = name(i) + (throughput ? "  throughput" : "  latency");
    const auto found = runner_.measure(options_for(cell, throughput), label,
                                       seconds_left(sweep_, cell, throughput));
    if (!found) return std::nullopt;
    const run_figures& figures = found->figures;
    std::fprintf(stderr, "%s: %s\n", label.c_str(), summary_of(figures, throughput).c_str());
    for (const std::string& line : found->remarks)
      std::fprintf(stderr, "  %s\n", line.c_str());
    (throughput ? sweep_.cells[i].throughput : sweep_.cells[i].latency) = figures;
    save();
    return figures;
  }

  static std::string summary_of(const run_figures& figures, bool throughput) {
    if (figures.completed == 0) return "failed: " + figures.first_error;
    std::string out = throughput
                          ? fixed(figures.requests_per_s, 2) + " requests/s, " +
                                fixed(figures.output_tokens_per_s, 1) + " output tokens/s"
                          : fixed(figures.ms_per_token, 2) + " ms per token, " +
                                fixed(figures.ms_per_output_token, 2) + " ms per output token";
    out += ", " + duration_text(figures.duration_s);
    if (figures.failed > 0) out += ", " + fixed(figures.failed, 0) + " failed";
    if (figures.stopped_early > 0) out += ", " + fixed(figures.stopped_early, 0) + " stopped early";
    if (figures.context_limited > 0) out += ", " + fixed(figures.context_limited, 0) + " cut";
    return out;
  }

  void save() const { write_file(order_.state_path, sweep_json(sweep_)); }

  sweep_order order_;
  load_runner& runner_;
  sweep sweep_;
};

} // namespace

std::vector<sweep_cell> sweep_grid(const std::vector<std::int32_t>& input_lengths,
                                   const std::vector<std::int32_t>& output_lengths,
                                   std::int64_t context_limit) {
  std::vector<sweep_cell> out;
  for (const std::int32_t input : input_lengths)
    for (const std::int32_t output : output_lengths) {
      sweep_cell cell;
      cell.input_tokens = input;
      cell.output_tokens = output;
      if (context_limit > 0 && std::int64_t{input} + output > context_limit)
        cell.skipped = "context limit " + std::to_string(context_limit);
      out.push_back(std::move(cell));
    }
  return out;
}

sweep run_sweep(sweep_order order, load_runner& runner) {
  return sweep_runner(std::move(order), runner).run();
}

} // namespace twill::bench
