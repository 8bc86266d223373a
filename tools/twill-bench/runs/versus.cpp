#include "tools/twill-bench/runs/versus.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <utility>

#include "tools/twill-bench/engine/load_run.hpp"
#include "tools/twill-bench/engine/text.hpp"

namespace twill::bench {
namespace {

double seconds_since(clock::time_point at) {
  return std::chrono::duration<double>(clock::now() - at).count();
}

class versus_runner {
public:
  versus_runner(const versus_order& order, load_runner& runner)
      : order_(order), plan_(order.plan), runner_(runner), running_(plan_.servers.size()) {
    std::filesystem::create_directories(order.log_folder);
    out_.starts.resize(plan_.servers.size());
    out_.rounds.assign(plan_.loads.size(),
                       std::vector<std::vector<run_figures>>(plan_.servers.size()));
  }

  versus_result run() {
    if (!plan_.restart)
      for (std::size_t s = 0; s < plan_.servers.size() && !runner_.interrupted(); ++s)
        begin_server(s);
    for (int round = 0; round < plan_.rounds && !runner_.interrupted(); ++round) {
      for (std::size_t i = 0; i < plan_.servers.size() && !runner_.interrupted(); ++i) {
        // In a round, every server runs every load once. Every other round uses the servers in
        // reverse order, so that a drift of the machine's speed favours no server.
        const std::size_t s = round % 2 == 0 ? i : plan_.servers.size() - 1 - i;
        if (plan_.restart) begin_server(s);
        for (std::size_t l = 0; l < plan_.loads.size() && !runner_.interrupted(); ++l)
          measure(round, s, l);
        if (plan_.restart) end_server(s);
      }
    }
    for (std::size_t s = 0; s < plan_.servers.size(); ++s)
      end_server(s);
    drop_unpaired();
    out_.interrupted = runner_.interrupted();
    return std::move(out_);
  }

private:
  std::string log_of(std::size_t s) const {
    return order_.log_folder + "/" + plan_.servers[s].name + ".log";
  }

  void begin_server(std::size_t s) {
    const planned_server& server = plan_.servers[s];
    running_[s] = runner_.start(server, log_of(s));
    if (!running_[s]) return;
    const clock::time_point begun = running_[s]->started();
    server_start seen;
    seen.ready_s = seconds_since(begun);
    serve_options one = server.target;
    one.prompt = "Hello";
    one.output_tokens = 1;
    one.n_prompts = 1;
    load_run first(one, {});
    const load_result result = first.measure();
    seen.first_token_s = seconds_since(begun);
    if (result.metrics.completed == 0 && !result.outcome.interrupted)
      throw std::runtime_error(
          server.name + ": the first request failed: " + result.outcome.records.front().error_kind +
          ": " + result.outcome.records.front().error);
    if (result.outcome.interrupted) runner_.interrupt();
    out_.starts[s].push_back(seen);
  }

  void end_server(std::size_t s) {
    if (!running_[s]) return;
    if (!running_[s]->running())
      out_.remarks.push_back(plan_.servers[s].name + " ended by itself, with status " +
                             std::to_string(running_[s]->exit_status()));
    else if (!running_[s]->end())
      out_.remarks.push_back(plan_.servers[s].name + " did not end in time and was killed");
    running_[s].reset();
  }

  serve_options options_for(int round, std::size_t s, std::size_t l) const {
    serve_options out = with_target(plan_.loads[l].load, plan_.servers[s]);
    // All servers of a round get the same prompts; each round has different prompts.
    out.seed += 0x10001ull * std::uint64_t(round) + 0x1000003ull * l;
    return out;
  }

  void measure(int round, std::size_t s, std::size_t l) {
    const planned_load& load = plan_.loads[l];
    std::vector<std::unique_ptr<child>> busy;
    child_order burn;
    burn.command = {"/bin/sh", "-c", "while :; do :; done"};
    burn.log_path = "/dev/null";
    for (int i = 0; i < load.busy_processes; ++i)
      busy.push_back(std::make_unique<child>(burn));
    const std::string label = "round " + std::to_string(round + 1) + "/" +
                              std::to_string(plan_.rounds) + "  " + plan_.servers[s].name + "  " +
                              load.name;
    const auto found = runner_.measure(options_for(round, s, l), label);
    if (!found) return;
    out_.rounds[l][s].push_back(found->figures);
    const run_figures& now = found->figures;
    std::fprintf(stderr, "%s: %s output tokens/s, TTFT %s ms, TPOT %s ms%s\n", label.c_str(),
                 fixed(now.output_tokens_per_s, 1).c_str(), fixed(now.median_ttft_ms, 1).c_str(),
                 fixed(now.median_tpot_ms, 2).c_str(),
                 now.first_error.empty() ? "" : (", " + now.first_error).c_str());
  }

  /// Drops the results of a round that was interrupted, in which only some servers had run a load,
  /// so that all servers have equally many results.
  void drop_unpaired() {
    for (auto& load : out_.rounds) {
      std::size_t least = load[0].size();
      for (const auto& rounds : load)
        least = std::min(least, rounds.size());
      for (auto& rounds : load)
        rounds.resize(least);
    }
  }

  const versus_order& order_;
  const run_plan& plan_;
  load_runner& runner_;
  std::vector<std::unique_ptr<child>> running_; // (n_servers)
  versus_result out_;
};

} // namespace

versus_result run_versus(const versus_order& order, load_runner& runner) {
  return versus_runner(order, runner).run();
}

} // namespace twill::bench
