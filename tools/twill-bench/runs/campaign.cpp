#include "tools/twill-bench/runs/campaign.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "tools/twill-bench/protocols/body.hpp"
#include "tools/twill-bench/report/charts.hpp"
#include "tools/twill-bench/report/write_file.hpp"
#include "tools/twill-bench/runs/compare.hpp"
#include "tools/twill-bench/runs/published_sweeps.hpp"
#include "tools/twill-bench/runs/sweep_file.hpp"
#include "tools/twill-bench/runs/sweep_report.hpp"

namespace twill::bench {
namespace {

/// Whether every cell of the grid has both phases, or a reason why it was skipped.
bool measured(const sweep& before, const sweep_order& grid) {
  for (const std::int32_t input : grid.input_lengths)
    for (const std::int32_t output : grid.output_lengths) {
      const sweep_cell* found = find_cell(before, input, output);
      if (found == nullptr || !found->done()) return false;
      if (found->skipped.empty() &&
          (found->latency->completed == 0 || found->throughput->completed == 0))
        return false;
    }
  return true;
}

/// Whether `names` is empty, which means all names, or contains `name`.
bool among(const std::string& name, const std::vector<std::string>& names) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

class campaign {
public:
  campaign(const campaign_order& order, load_runner& runner) : order_(order), runner_(runner) {}

  campaign_result run() {
    for (const planned_model& model : order_.plan.models) {
      if (!among(model.name, order_.models)) continue;
      for (const planned_server& server : order_.plan.servers) {
        if (runner_.interrupted()) break;
        if (among(server.name, order_.servers) && among(model.name, server.models))
          attempt(model, server);
      }
      compare(model);
    }
    out_.interrupted = runner_.interrupted();
    return std::move(out_);
  }

private:
  std::string folder_of(const planned_model& model) const {
    return order_.folder + "/" + model.name;
  }
  std::string folder_of(const planned_model& model, const planned_server& server) const {
    return folder_of(model) + "/" + server.name;
  }

  /// Measures a model on a server. A failure is reported and not thrown, because the other servers
  /// must still be measured when one cannot run the model.
  void attempt(const planned_model& model, const planned_server& server) {
    try {
      measure(model, server);
    } catch (const std::runtime_error& error) {
      out_.remarks.push_back(model.name + " on " + server.name + ": " + error.what());
      std::fprintf(stderr, "%s\n", out_.remarks.back().c_str());
    }
  }

  void measure(const planned_model& model, const planned_server& server) {
    const std::string folder = folder_of(model, server);
    sweep_order order = order_for(model, server);
    order.state_path = folder + "/sweep.json";
    std::fprintf(stderr, "== %s on %s\n", model.name.c_str(), server.name.c_str());
    if (std::filesystem::exists(order.state_path) &&
        measured(read_sweep(read_file(order.state_path), order.state_path), order)) {
      std::fprintf(stderr, "measured before\n");
      return;
    }
    prepare(model);
    if (runner_.interrupted()) return;
    std::filesystem::create_directories(folder);
    planned_server how = server;
    how.order.environment.insert(how.order.environment.end(), model.environment.begin(),
                                 model.environment.end());
    const auto program = runner_.start(how, folder + "/server.log");
    if (!program) return;
    const sweep done = run_sweep(std::move(order), runner_);
    std::fprintf(stderr, "%s\n", write_sweep(folder, done).c_str());
  }

  sweep_order order_for(const planned_model& model, const planned_server& server) const {
    sweep_order out = model.grid;
    out.base = with_target(out.base, server);
    out.setup.backend = out.base.backend;
    out.setup.seed = out.base.seed;
    out.setup.title = model.title;
    out.setup.server = server.title;
    out.setup.request_extras = body_writer().sampling(out.base).finish();
    return out;
  }

  void prepare(const planned_model& model) {
    if (model.prepare.empty()) return;
    std::filesystem::create_directories(folder_of(model));
    child_order how;
    how.command = {"/bin/sh", "-c", model.prepare};
    how.environment = model.environment;
    how.log_path = folder_of(model) + "/prepare.log";
    child program(how);
    while (!program.wait_for_end(std::chrono::milliseconds(100)))
      if (runner_.interrupted()) return;
    if (program.exit_status() != 0)
      throw std::runtime_error("prepare ended with status " +
                               std::to_string(program.exit_status()) + ", see " + how.log_path);
  }

  void compare(const planned_model& model) const {
    std::vector<named_sweep> sweeps;
    for (const planned_server& server : order_.plan.servers) {
      const std::string path = folder_of(model, server) + "/sweep.json";
      if (std::filesystem::exists(path))
        sweeps.push_back({server.name, read_sweep(read_file(path), path)});
    }
    if (sweeps.empty()) return;
    std::vector<reference> beside;
    for (const std::string& each : order_.plan.references)
      beside.push_back(reference_sweep(each));
    std::string text = compare_sweeps(sweeps, beside);
    for (const std::string& line : out_.remarks)
      if (line.rfind(model.name + " on ", 0) == 0) text += "\n- " + line + "\n";
    write_file(folder_of(model) + "/compare.md", text);
    write_charts(folder_of(model), compare_charts(sweeps));
  }

  const campaign_order& order_;
  load_runner& runner_;
  campaign_result out_;
};

} // namespace

campaign_result run_campaign(const campaign_order& order, load_runner& runner) {
  return campaign(order, runner).run();
}

} // namespace twill::bench
