#include "tools/twill-bench/runs/versus_report.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "tools/twill-bench/engine/stats.hpp"
#include "tools/twill-bench/engine/text.hpp"
#include "tools/twill-bench/report/markdown.hpp"

namespace twill::bench {
namespace {

struct metric {
  const char* name;
  const char* key;
  bool more_is_better;
  double run_figures::*member;
};

constexpr std::array<metric, 9> metrics{{
    {"Request throughput (req/s)", "request_throughput", true, &run_figures::requests_per_s},
    {"Output token throughput (tok/s)", "output_throughput", true,
     &run_figures::output_tokens_per_s},
    {"Total token throughput (tok/s)", "total_token_throughput", true,
     &run_figures::total_tokens_per_s},
    {"Median TTFT (ms)", "median_ttft_ms", false, &run_figures::median_ttft_ms},
    {"P99 TTFT (ms)", "p99_ttft_ms", false, &run_figures::p99_ttft_ms},
    {"Median TPOT (ms)", "median_tpot_ms", false, &run_figures::median_tpot_ms},
    {"P99 ITL (ms)", "p99_itl_ms", false, &run_figures::p99_itl_ms},
    {"Median E2EL (ms)", "median_e2el_ms", false, &run_figures::median_e2el_ms},
    {"Mean latency per output token (ms)", "mean_latency_per_output_token_ms", false,
     &run_figures::ms_per_output_token},
}};

template <class Item>
std::vector<double> values_of(const std::vector<Item>& items, double Item::*member) {
  std::vector<double> out;
  for (const Item& each : items)
    out.push_back(each.*member);
  return out;
}

/// Formats values as "median (least to most)".
std::string spread(const std::vector<double>& values, int digits) {
  if (values.empty()) return "";
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return fixed(percentile(values, 50), digits) + " (" + fixed(*least, digits) + " to " +
         fixed(*most, digits) + ")";
}

/// How many times better the first server is, for each round; empty when a figure is missing.
std::vector<double> ratios(const std::vector<double>& first, const std::vector<double>& other,
                           bool more_is_better) {
  std::vector<double> out;
  for (std::size_t i = 0; i < std::min(first.size(), other.size()); ++i) {
    if (!(first[i] > 0 && other[i] > 0)) return {};
    out.push_back(more_is_better ? first[i] / other[i] : other[i] / first[i]);
  }
  return out;
}

std::string row(const char* name, const std::vector<std::vector<double>>& values,
                bool more_is_better) {
  std::vector<std::string> cells{name};
  const auto any = std::any_of(values.begin(), values.end(), [](const auto& each) {
    return std::any_of(each.begin(), each.end(), [](double value) { return value > 0; });
  });
  if (!any) return {};
  for (std::size_t s = 0; s < values.size(); ++s) {
    cells.push_back(spread(values[s], 2));
    if (s > 0) cells.push_back(spread(ratios(values[0], values[s], more_is_better), 2));
  }
  return markdown_row(cells);
}

std::string head(const run_plan& plan, const std::string& corner) {
  std::vector<std::string> names{corner};
  for (const planned_server& server : plan.servers) {
    names.push_back(server.name);
    if (&server != &plan.servers[0]) names.push_back(plan.servers[0].name + " better by");
  }
  return markdown_heading(names, ":---");
}

std::string about(const planned_load& load) {
  const serve_options& o = load.load;
  std::string out = std::to_string(o.n_prompts) + " requests, " + std::to_string(o.input_tokens) +
                    " tokens in, " + std::to_string(o.output_tokens) + " out";
  if (o.max_concurrency > 0) out += ", " + std::to_string(o.max_concurrency) + " at once";
  if (!std::isinf(o.request_rate_per_s)) out += ", " + fixed(o.request_rate_per_s, 2) + "/s";
  if (load.busy_processes > 0)
    out += ", beside " + std::to_string(load.busy_processes) + " busy processes";
  return out;
}

std::string load_remarks(const run_plan& plan,
                         const std::vector<std::vector<run_figures>>& servers) {
  std::string out;
  std::vector<double> lengths;
  for (std::size_t s = 0; s < servers.size(); ++s) {
    run_figures sum;
    for (const run_figures& each : servers[s]) {
      sum.failed += each.failed;
      sum.stopped_early += each.stopped_early;
      sum.context_limited += each.context_limited;
      sum.client_cpu_share = std::max(sum.client_cpu_share, each.client_cpu_share);
      if (sum.first_error.empty()) sum.first_error = each.first_error;
    }
    lengths.push_back(percentile(values_of(servers[s], &run_figures::output_tokens), 50));
    const std::string name = "- WARNING: " + plan.servers[s].name + ": ";
    if (sum.failed > 0)
      out += name + fixed(sum.failed, 0) + " requests failed: " + sum.first_error + "\n";
    if (sum.stopped_early + sum.context_limited > 0)
      out += name + fixed(sum.stopped_early + sum.context_limited, 0) +
             " requests ended before the length asked for\n";
    if (sum.client_cpu_share > 0.8)
      out +=
          name + "the client was busy: " + fixed(sum.client_cpu_share * 100, 0) + " % of a core\n";
  }
  const auto [least, most] = std::minmax_element(lengths.begin(), lengths.end());
  if (*most - *least > 0.02 * *most)
    out += "- WARNING: mean output lengths differ by over 2 %: requests/s do not compare\n";
  return out;
}

boost::json::array numbers(const std::vector<double>& values) {
  return boost::json::array(values.begin(), values.end());
}

} // namespace

std::string versus_markdown(const run_plan& plan, const versus_result& result) {
  std::string out;
  for (std::size_t l = 0; l < plan.loads.size(); ++l) {
    const auto& servers = result.rounds[l];
    out += "## " + plan.loads[l].name + "\n\n" + about(plan.loads[l]) + "; " +
           std::to_string(servers[0].size()) + " rounds by turns: median (least to most)\n\n" +
           head(plan, "");
    for (const metric& each : metrics) {
      std::vector<std::vector<double>> values;
      for (const auto& rounds : servers)
        values.push_back(values_of(rounds, each.member));
      out += row(each.name, values, each.more_is_better);
    }
    const std::string remarks = load_remarks(plan, servers);
    out += remarks.empty() ? "\n" : "\n" + remarks + "\n";
  }
  out += "## start\n\n" + head(plan, "after exec");
  for (const auto& [name, member] :
       {std::pair("ready (s)", &server_start::ready_s),
        std::pair("first token received (s)", &server_start::first_token_s)}) {
    std::vector<std::vector<double>> values;
    for (const auto& starts : result.starts)
      values.push_back(values_of(starts, member));
    out += row(name, values, false);
  }
  for (const std::string& line : result.remarks)
    out += "\n- " + line + "\n";
  if (result.interrupted) out += "\n- Interrupted: only complete rounds count.\n";
  return out;
}

std::string versus_json(const run_plan& plan, const versus_result& result) {
  namespace json = boost::json;
  json::array loads;
  for (std::size_t l = 0; l < plan.loads.size(); ++l) {
    json::object servers;
    for (std::size_t s = 0; s < plan.servers.size(); ++s) {
      json::object rounds;
      for (const metric& each : metrics)
        rounds[each.key] = numbers(values_of(result.rounds[l][s], each.member));
      for (const auto& [key, member] :
           {std::pair("completed", &run_figures::completed),
            std::pair("failed", &run_figures::failed),
            std::pair("stopped_early", &run_figures::stopped_early),
            std::pair("context_limited", &run_figures::context_limited),
            std::pair("mean_output_tokens", &run_figures::output_tokens)})
        rounds[key] = numbers(values_of(result.rounds[l][s], member));
      servers[plan.servers[s].name] = std::move(rounds);
    }
    loads.push_back(json::object{
        {"name", plan.loads[l].name}, {"load", about(plan.loads[l])}, {"servers", servers}});
  }
  json::object starts;
  for (std::size_t s = 0; s < plan.servers.size(); ++s)
    starts[plan.servers[s].name] = json::object{
        {"ready_s", numbers(values_of(result.starts[s], &server_start::ready_s))},
        {"first_token_s", numbers(values_of(result.starts[s], &server_start::first_token_s))}};
  return json::serialize(json::object{{"twill_bench_versus", 1},
                                      {"version", TWILL_VERSION},
                                      {"interrupted", result.interrupted},
                                      {"loads", std::move(loads)},
                                      {"starts", std::move(starts)}}) +
         "\n";
}

} // namespace twill::bench
