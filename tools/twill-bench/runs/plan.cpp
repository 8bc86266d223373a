#include "tools/twill-bench/runs/plan.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "config/base/read_file.hpp"
#include "config/parse_toml.hpp"
#include "tools/twill-bench/protocols/protocol.hpp"
#include "tools/twill-bench/runs/plan_table.hpp"
#include "tools/twill-bench/runs/published_sweeps.hpp"

namespace twill::bench {
namespace {

toml::table parse_plan(const std::string& path) {
  constexpr std::int64_t largest_plan = 4 << 20;
  const auto text = twill::read_file(path, largest_plan);
  if (!text.ok()) throw std::runtime_error(text.detail());
  try {
    return config::parse_toml(text.value(), path);
  } catch (const toml::parse_error& error) {
    std::ostringstream words;
    words << path << ":" << error.source().begin.line << ": " << error.description();
    throw std::runtime_error(words.str());
  }
}

planned_server read_server(plan_table from, plan_kind kind) {
  planned_server out;
  out.name = from.required("name");
  out.order.command = from.command("command");
  from.pairs("environment", out.order.environment);
  from.read<std::string>("folder", out.order.folder);
  std::chrono::duration<double> grace(10);
  from.seconds("stop_timeout_s", grace);
  out.order.grace = std::chrono::duration_cast<std::chrono::milliseconds>(grace);
  out.target.base_url = from.required("base_url");
  out.ready_url = out.target.base_url + "/health";
  from.read<std::string>("ready_url", out.ready_url);
  from.seconds("ready_timeout_s", out.ready_timeout);
  from.read<std::string>("backend", out.target.backend);
  const auto known = backend_names();
  if (std::find(known.begin(), known.end(), out.target.backend) == known.end())
    from.fail("backend", "is not a known backend, got " + out.target.backend);
  from.read<std::string>("endpoint", out.target.endpoint);
  from.read<std::string>("model", out.target.model);
  from.read<std::string>("extra_body", out.target.extra_body);
  from.pairs("headers", out.target.headers);
  from.count("connections", out.target.connections, 0);
  out.title = out.name;
  if (kind == plan_kind::campaign) {
    from.read<std::string>("title", out.title);
    from.texts("models", out.models);
  }
  from.finish();
  return out;
}

planned_load read_load(plan_table from) {
  planned_load out;
  serve_options& load = out.load;
  load.ignore_eos = true;
  load.n_prompts = 32;
  load.input_tokens = 128;
  load.max_concurrency = 1;
  load.n_warmups = 1;
  out.name = from.required("name");
  from.count("input_tokens", load.input_tokens, 1);
  from.count("output_tokens", load.output_tokens, 1);
  from.count("num_prompts", load.n_prompts, 1);
  from.count("max_concurrency", load.max_concurrency, 0);
  from.count("num_warmups", load.n_warmups, 0);
  from.count("seed", load.seed, 0);
  from.count("busy_processes", out.busy_processes, 0);
  from.read<double>("request_rate", load.request_rate_per_s);
  from.read<double>("burstiness", load.burstiness);
  if (!(load.request_rate_per_s > 0)) from.fail("request_rate", "must be > 0");
  if (!(load.burstiness > 0)) from.fail("burstiness", "must be > 0");
  from.read<double>("range_ratio", load.range_ratio);
  if (!(load.range_ratio >= 0 && load.range_ratio < 1))
    from.fail("range_ratio", "must be in [0, 1)");
  from.read<bool>("ignore_eos", load.ignore_eos);
  if (const auto value = from.get<double>("temperature")) load.temperature = *value;
  from.seconds("request_timeout_s", load.request_timeout);
  from.finish();
  return out;
}

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

/// `out` already has the values that the plan gives for all models.
planned_model read_model(plan_table from, planned_model out) {
  out.name = out.title = from.required("name");
  from.read<std::string>("title", out.title);
  from.read<std::string>("prepare", out.prepare);
  from.pairs("environment", out.environment);
  read_grid(from, out.grid);
  from.finish();
  return out;
}

/// Reads the keys that only the plan of a campaign has.
void read_models(plan_table& from, run_plan& out) {
  planned_model all;
  sweep_order& grid = all.grid;
  grid.input_lengths = grid.output_lengths = {128, 512, 1024, 2048};
  grid.setup.latency_requests = 3;
  grid.setup.throughput_requests = 64;
  grid.base.n_warmups = 1;
  read_grid(from, grid);
  from.read<std::string>("prepare", all.prepare);
  from.texts("references", out.references);
  for (const plan_table& each : from.tables("model"))
    out.models.push_back(read_model(each, all));
}

} // namespace

run_plan read_plan(const std::string& path, plan_kind kind) {
  const toml::table root = parse_plan(path);
  const bool campaign = kind == plan_kind::campaign;
  run_plan out;
  plan_table from(root, path);
  if (campaign) {
    read_models(from, out);
  } else {
    from.count("rounds", out.rounds, 1);
    from.read<bool>("restart", out.restart);
  }
  for (const plan_table& each : from.tables("server"))
    out.servers.push_back(read_server(each, kind));
  if (!campaign)
    for (const plan_table& each : from.tables("load"))
      out.loads.push_back(read_load(each));
  from.finish();
  if (campaign && out.models.empty()) from.fail("model", "must be given at least once");
  if (campaign && out.servers.empty()) from.fail("server", "must be given at least once");
  if (!campaign && out.servers.size() < 2) from.fail("server", "must be given at least twice");
  if (!campaign && out.loads.empty()) from.fail("load", "must be given at least once");
  const auto known = reference_names();
  for (const std::string& each : out.references)
    if (std::find(known.begin(), known.end(), each) == known.end())
      from.fail("references", "must name published sweeps, got " + each);
  return out;
}

serve_options with_target(serve_options load, const planned_server& server) {
  const serve_options& target = server.target;
  load.backend = target.backend;
  load.base_url = target.base_url;
  load.endpoint = target.endpoint;
  load.model = target.model;
  load.extra_body = target.extra_body;
  load.headers = target.headers;
  load.connections = target.connections;
  return load;
}

} // namespace twill::bench
