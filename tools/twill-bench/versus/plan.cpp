#include "tools/twill-bench/versus/plan.hpp"

#include <toml++/toml.h>

#include <stdexcept>

#include "tools/twill-bench/versus/plan_table.hpp"

namespace twill::bench {
namespace {

versus_load read_load(plan_table from) {
  versus_load out;
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

} // namespace

versus_plan read_plan(const std::string& path) {
  const toml::table root = parse_plan(path);
  versus_plan out;
  plan_table from(root, path);
  from.count("rounds", out.rounds, 1);
  from.read<bool>("restart", out.restart);
  for (plan_table& each : from.tables("server")) {
    out.servers.push_back(read_server(each));
    each.finish();
  }
  for (const plan_table& each : from.tables("load"))
    out.loads.push_back(read_load(each));
  from.finish();
  if (out.servers.size() < 2) from.fail("server", "must be given at least twice");
  if (out.loads.empty()) from.fail("load", "must be given at least once");
  return out;
}

} // namespace twill::bench
