#include "tools/twill-bench/kernels/paper/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <vector>

#include <boost/json.hpp>

#include "tools/twill-bench/kernels/paper/decode_step.hpp"
#include "tools/twill-bench/kernels/paper/marlin.hpp"
#include "tools/twill-bench/kernels/paper/targets.hpp"

namespace twill::bench::paper {

namespace {

namespace json = boost::json;

constexpr const char* step_cards[] = {"A100-40G", "A6000", "H100"};
constexpr const char* target_cards[] = {"A100-40G", "A6000", "H100", "H200"};
constexpr std::int64_t step_rows[] = {1, 8, 16, 32};
constexpr std::int64_t step_positions[] = {512, 2048};

constexpr char preface[] =
    "This is arithmetic on counts: no GPU ran. A kernel takes as long as the slowest of DRAM, L2,\n"
    "issue slots, tensor cores and latency, and its launch. Figures of kernels are plans\n"
    "or counts of machine code (kernels/paper/plans.hpp); those of cards have sources in "
    "cards.cpp.\n"
    "Left out are hits in L2 from one launch to the next, clocks that fall under load, bank\n"
    "conflicts, and needs that overlap incompletely: up to 32 rows Marlin took longer than this.\n"
    "What mma reaches of its rate is taken from Marlin as well, so more rows are no check of it.\n";

void print_cards(json_lines& lines) {
  std::printf("\n%-10s %4s %6s %8s %8s %8s %8s %10s %9s\n", "card", "SMs", "GHz", "DRAM", "read",
              "L2 GB/s", "TFLOP/s", "latency ns", "launch us");
  for (const card& c : cards()) {
    std::printf("%-10s %4d %6.2f %8.0f %8.0f %8.0f %8.0f %10.0f %9.2f\n", c.name, c.multiprocessors,
                c.clock_hz / 1e9, c.dram_bytes_per_s / 1e9, c.read_bytes_per_s() / 1e9,
                c.l2_bytes_per_s / 1e9, 2 * c.tensor_fma_per_s * c.mma_share / 1e12,
                c.dram_latency_s * 1e9, c.launch_s * 1e6);
    lines.write(json::serialize(json::object{{"record", "paper_card"},
                                             {"card", c.name},
                                             {"multiprocessors", c.multiprocessors},
                                             {"clock_hz", c.clock_hz},
                                             {"dram_bytes_per_s", c.dram_bytes_per_s},
                                             {"read_bytes_per_s", c.read_bytes_per_s()},
                                             {"l2_bytes_per_s", c.l2_bytes_per_s},
                                             {"dram_latency_s", c.dram_latency_s},
                                             {"launch_s", c.launch_s}}));
  }
}

void print_marlin(json_lines& lines) {
  std::printf("\nMarlin by its own counts, four products of a 13B layer, GB/s (published by vllm "
              "#2497 for an A100)\n%-10s",
              "rows");
  for (const marlin_figure& f : marlin_published)
    std::printf(" %14lld", static_cast<long long>(f.rows));
  std::printf("\n%-10s", "published");
  for (const marlin_figure& f : marlin_published)
    std::printf(" %14.0f", f.published_gb_per_s);
  for (const char* name : {"A100-40G", "A100-80G"}) {
    std::printf("\n%-10s", name);
    for (const marlin_figure& f : marlin_published) {
      const double gb_per_s = marlin_gb_per_s(card_of(name), f.rows);
      std::printf(" %6.0f (%+3.0f %%)", gb_per_s, 100 * (gb_per_s / f.published_gb_per_s - 1));
      lines.write(json::serialize(json::object{{"record", "paper_marlin"},
                                               {"card", name},
                                               {"rows", f.rows},
                                               {"gb_per_s", gb_per_s},
                                               {"published_gb_per_s", f.published_gb_per_s}}));
    }
  }
  const kernel_counts square = marlin_counts(card_of("H100"), 1, 8192, 8192);
  const double h100 = square.dram_bytes / predict(card_of("H100"), square).seconds / 1e9;
  std::printf(
      "\nThe source does not say which A100 it was; the check is on the 40G.\nH100, 8192 x "
      "8192, 1 row: %.0f, published %.0f to %.0f (vllm #34556, humming #2). No check: in these "
      "tables the\nproducts of 2, 1 and 1/2 bytes a weight fit 3.2 TB/s and 16 us a call, "
      "whose source they do not tell. So the\nfigures of H100 and H200 stand unconfirmed.\n",
      h100, marlin_h100_least_gb_per_s, marlin_h100_most_gb_per_s);
}

/// Prints one line for a kernel: its number of launches, and one cell for each number of rows.
void print_kernel(const std::string& name, const std::vector<const step_kernel*>& cells) {
  std::printf("%-15s %8lld", name.c_str(), static_cast<long long>(cells[0]->launches));
  for (const step_kernel* k : cells)
    std::printf("  %8.1f %-7s %3.0f %4.1f", k->one.seconds * 1e6, name_of(k->one.by),
                100 * k->one.dram_share, 100 * k->one.wave_loss);
  std::printf("\n");
}

void write_kernel(json_lines& lines, const card& on, const seed_layer& seed,
                  const decode_step& step, std::int64_t positions, const step_kernel& k) {
  lines.write(json::serialize(json::object{{"record", "paper_kernel"},
                                           {"card", on.name},
                                           {"model", seed.name},
                                           {"rows", step.rows},
                                           {"positions", positions},
                                           {"kernel", k.name},
                                           {"launches", k.launches},
                                           {"us", k.one.seconds * 1e6},
                                           {"bound", name_of(k.one.by)},
                                           {"dram_bytes", k.dram_bytes},
                                           {"dram_share", k.one.dram_share},
                                           {"waves", k.one.waves},
                                           {"wave_loss", k.one.wave_loss}}));
}

/// Prints the total times of steps. Where the host's launches slow any of the steps down, also
/// prints the times of steps without a CUDA graph.
void print_steps(std::int64_t positions, const std::vector<decode_step>& steps) {
  const auto print = [&](double seconds, std::int64_t rows) {
    std::printf("  %8.2f ms %5.0f tok/s  ", seconds * 1e3, static_cast<double>(rows) / seconds);
  };
  std::printf("step %-10lld %8lld", static_cast<long long>(positions),
              static_cast<long long>(steps[0].launches()));
  for (const decode_step& step : steps)
    print(step.gpu_s(), step.rows);
  std::printf("\n");
  if (std::none_of(steps.begin(), steps.end(),
                   [](const decode_step& s) { return s.step_s() > s.gpu_s(); }))
    return;
  std::printf("%-24s", "  by the host");
  for (const decode_step& step : steps)
    print(step.step_s(), step.rows);
  std::printf("\n");
}

void write_step(json_lines& lines, const card& on, const seed_layer& seed, const decode_step& step,
                std::int64_t positions) {
  for (const step_kernel& k : step.kernels)
    write_kernel(lines, on, seed, step, positions, k);
  const auto rows = static_cast<double>(step.rows);
  lines.write(json::serialize(json::object{{"record", "paper_step"},
                                           {"card", on.name},
                                           {"model", seed.name},
                                           {"rows", step.rows},
                                           {"positions", positions},
                                           {"launches", step.launches()},
                                           {"gpu_us", step.gpu_s() * 1e6},
                                           {"tokens_per_s", rows / step.gpu_s()},
                                           {"tokens_per_s_by_host", rows / step.step_s()}}));
}

void print_model(json_lines& lines, const card& on, const seed_layer& seed) {
  std::printf("\n%s, %s: us of a launch, what bounds it, %% of DRAM bandwidth, %% lost to waves\n"
              "%-15s %8s",
              on.name, seed.name, "rows", "launches");
  for (const std::int64_t rows : step_rows)
    std::printf("  %25lld", static_cast<long long>(rows));
  std::printf("\n");
  std::vector<std::vector<decode_step>> by_positions;
  for (const std::int64_t positions : step_positions) {
    std::vector<decode_step>& steps = by_positions.emplace_back();
    for (const std::int64_t rows : step_rows) {
      steps.push_back(step_of(on, seed, rows, positions));
      write_step(lines, on, seed, steps.back(), positions);
    }
  }
  // Only the time of attention depends on the number of positions. Other kernels take the same time
  // with every number of positions and are printed once.
  for (std::size_t i = 0; i < by_positions[0][0].kernels.size(); ++i) {
    const std::string& name = by_positions[0][0].kernels[i].name;
    const bool grows = name == "attention";
    for (std::size_t p = 0; p < (grows ? by_positions.size() : 1); ++p) {
      std::vector<const step_kernel*> cells;
      for (const decode_step& step : by_positions[p])
        cells.push_back(&step.kernels[i]);
      print_kernel(grows ? name + " " + std::to_string(step_positions[p]) : name, cells);
    }
  }
  for (std::size_t p = 0; p < by_positions.size(); ++p)
    print_steps(step_positions[p], by_positions[p]);
}

std::string text_of(const target& t, double value) {
  char text[32];
  if (t.in == unit::share)
    std::snprintf(text, sizeof text, "%.1f %%", 100 * value);
  else
    std::snprintf(text, sizeof text, t.in == unit::us ? "%.1f us" : "%.2fx", value);
  return text;
}

/// `excess` is the factor by which the model predicts Marlin to be faster than it was measured.
void print_target(json_lines& lines, const card& on, const target& t, double excess) {
  const char* const card = on.name;
  // The H100 and the H200 are the cards with mma_share below 1. For them only one figure of Marlin
  // was published (marlin_h100_* in marlin.hpp). It does not confirm the model, because the tables
  // that it comes from contain 16 us per call of unknown cause (see print_marlin()).
  const bool confirmed = on.mma_share == 1;
  const double slower = t.at_most ? t.figure * excess : t.figure / excess;
  const bool safe = t.at_most ? slower <= t.wanted : slower >= t.wanted;
  std::printf("%-10s %-41s %-37s %8s %8s  %s%s%s\n", card, t.what.c_str(), t.where.c_str(),
              t.at_most ? "at most" : "at least", text_of(t, t.wanted).c_str(),
              t.met() ? "met: " : "falls short: ", text_of(t, t.figure).c_str(),
              !t.met()     ? ""
              : !confirmed ? ", unconfirmed"
              : !safe      ? ", by less than the error"
                           : "");
  lines.write(json::serialize(json::object{{"record", "paper_target"},
                                           {"card", card},
                                           {"what", t.what},
                                           {"where", t.where},
                                           {"figure", t.figure},
                                           {"wanted", t.wanted},
                                           {"at_most", t.at_most},
                                           {"met", t.met()},
                                           {"confirmed", confirmed}}));
}

} // namespace

void report(json_lines& lines) {
  std::printf("%s", preface);
  print_cards(lines);
  print_marlin(lines);
  for (const char* name : step_cards)
    for (const seed_layer& seed : std::span(seed_layers, n_paper_seeds))
      print_model(lines, card_of(name), seed);
  std::printf(
      "\nA step is the GPU's time with launches in a graph; \"by the host\" is a step whose "
      "launches the host makes, %.0f us each, where that takes longer.\n",
      host_launch_s * 1e6);
  const double marlin =
      marlin_gb_per_s(card_of("A100-40G"), 1) / marlin_published[0].published_gb_per_s;
  std::printf("\"By less than the error\": a kernel that is slower than the model says by the same "
              "factor as Marlin was, %.2f, would fall short.\n\n",
              marlin);
  print_target(lines, card_of("A100-40G"),
               {"Marlin, 1 row: off the published figure", "vllm #2497", std::abs(marlin - 1), 0.15,
                unit::share, true},
               1);
  for (const char* name : target_cards)
    for (const target& t : targets_of(card_of(name)))
      print_target(lines, card_of(name), t, marlin);
}

} // namespace twill::bench::paper
