#include "tools/twill-bench/campaign/plan.hpp"

#include <algorithm>

#include "tools/twill-bench/sweep/reference.hpp"
#include "tools/twill-bench/versus/plan_table.hpp"

namespace twill::bench {
namespace {

void read_grid(plan_table& from, sweep_order& grid) {
  from.lengths("input_lens", grid.input_lengths);
  from.lengths("output_lens", grid.output_lengths);
  from.count("latency_prompts", grid.setup.latency_requests, 1);
  from.count("throughput_prompts", grid.setup.throughput_requests, 1);
  from.count("throughput_concurrency", grid.setup.throughput_concurrency, 0);
  from.count("context_limit", grid.setup.context_limit, 1);
  from.count("num_warmups", grid.base.n_warmups, 0);
  from.count("seed", grid.base.seed, 0);
  from.read<bool>("ignore_eos", grid.setup.ignore_eos);
  from.seconds("request_timeout_s", grid.base.request_timeout);
  from.read<std::string>("hardware", grid.setup.hardware);
}

/// `out` brings what the plan says for all models.
campaign_model read_model(plan_table from, campaign_model out) {
  out.name = out.title = from.required("name");
  from.read<std::string>("title", out.title);
  from.read<std::string>("prepare", out.prepare);
  from.pairs("environment", out.environment);
  read_grid(from, out.grid);
  from.finish();
  return out;
}

} // namespace

campaign_plan read_campaign(const std::string& path) {
  const toml::table root = parse_plan(path);
  plan_table from(root, path);
  campaign_model all;
  sweep_order& grid = all.grid;
  grid.input_lengths = grid.output_lengths = {128, 512, 1024, 2048};
  grid.setup.latency_requests = 3;
  grid.setup.throughput_requests = 64;
  grid.base.n_warmups = 1;
  read_grid(from, grid);
  from.read<std::string>("prepare", all.prepare);
  campaign_plan out;
  from.texts("references", out.references);
  for (const plan_table& each : from.tables("model"))
    out.models.push_back(read_model(each, all));
  for (plan_table& each : from.tables("server")) {
    campaign_server server;
    server.how = read_server(each);
    server.title = server.how.name;
    each.read<std::string>("title", server.title);
    each.texts("models", server.models);
    each.finish();
    out.servers.push_back(std::move(server));
  }
  from.finish();
  if (out.models.empty()) from.fail("model", "must be given at least once");
  if (out.servers.empty()) from.fail("server", "must be given at least once");
  const auto known = reference_names();
  for (const std::string& each : out.references)
    if (std::find(known.begin(), known.end(), each) == known.end())
      from.fail("references", "must name published sweeps, got " + each);
  return out;
}

} // namespace twill::bench
