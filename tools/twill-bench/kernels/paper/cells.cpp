#include "tools/twill-bench/kernels/paper/cells.hpp"

#include <cstdio>
#include <span>
#include <string>

#include <boost/json.hpp>

#include "tools/twill-bench/kernels/paper/decode_step.hpp"
#include "tools/twill-bench/kernels/paper/serving.hpp"
#include "tools/twill-bench/runs/published_sweeps.hpp"

namespace twill::bench::paper {

namespace {

namespace json = boost::json;

struct tally {
  int cells = 0, ahead = 0;
};

void print_cell(json_lines& lines, const card& on, const seed_layer& seed,
                const std::string& reference, const sweep_cell& cell, tally& sum) {
  const run_figures& f = *cell.throughput;
  std::printf("%6d %6d ", cell.input_tokens, cell.output_tokens);
  if (f.ms_per_output_token / 1e3 < least_step_s(on, seed)) {
    std::printf("left out: %.1f ms a token, where reading the weights once takes %.1f; its "
                "sequences had ended before\n",
                f.ms_per_output_token, least_step_s(on, seed) * 1e3);
    return;
  }
  const request_load load =
      load_of(cell.input_tokens, f.requests_per_s, f.output_tokens_per_s, f.ms_per_output_token);
  const served s = serve(on, seed, load);
  const double ratio = s.tokens_per_s / f.output_tokens_per_s;
  ++sum.cells;
  sum.ahead += ratio > 1 ? 1 : 0;
  std::printf("%10.1f %10.0f %10.0f %7.2f %10.1f %8.1f\n", load.concurrency, f.output_tokens_per_s,
              s.tokens_per_s, ratio, s.prompt_s * 1e3, s.step_s * 1e3);
  lines.write(json::serialize(json::object{{"record", "paper_cell"},
                                           {"card", on.name},
                                           {"model", seed.name},
                                           {"reference", reference},
                                           {"input_tokens", cell.input_tokens},
                                           {"output_tokens", cell.output_tokens},
                                           {"concurrency", load.concurrency},
                                           {"published_tokens_per_s", f.output_tokens_per_s},
                                           {"tokens_per_s", s.tokens_per_s},
                                           {"prompt_us", s.prompt_s * 1e6},
                                           {"step_us", s.step_s * 1e6}}));
}

} // namespace

void report_cells(json_lines& lines) {
  const card& on = card_of("A100-40G");
  tally sum;
  for (const std::string& name : reference_names())
    for (const seed_layer& seed : std::span(seed_layers, n_paper_seeds)) {
      if (!name.starts_with(seed.name)) continue;
      const reference published = reference_sweep(name);
      std::printf("\n%s, beside twill by this model on %s\n%6s %6s %10s %10s %10s %7s %10s %8s\n",
                  published.figures.setup.title.c_str(), on.name, "input", "output", "requests",
                  "tok/s", "twill", "ratio", "prompt ms", "step ms");
      for (const sweep_cell& cell : published.figures.cells)
        print_cell(lines, on, seed, name, cell, sum);
      if (!published.remark.empty()) std::printf("Published: %s.\n", published.remark.c_str());
    }
  std::printf("\nahead in %d of %d cells; \"requests\" are under way at once, by Little's law\n",
              sum.ahead, sum.cells);
}

} // namespace twill::bench::paper
