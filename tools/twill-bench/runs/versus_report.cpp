#include "tools/twill-bench/runs/versus_report.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tools/twill-bench/engine/stats.hpp"
#include "tools/twill-bench/engine/text.hpp"
#include "tools/twill-bench/report/side_by_side.hpp"
#include "tools/twill-bench/runs/doubts.hpp"

namespace twill::bench {
namespace {

template <class Item>
std::vector<double> values_of(const std::vector<Item>& items, double Item::*member) {
  std::vector<double> out;
  for (const Item& each : items)
    out.push_back(each.*member);
  return out;
}

/// A table of the plan's servers, without rows.
side_by_side table_of(const run_plan& plan, const std::string& label) {
  side_by_side out;
  out.labels = {label};
  out.ratio = ratio_kind::first_better_by;
  for (const planned_server& server : plan.servers)
    out.runs.push_back({server.name});
  return out;
}

/// Appends a row of `member`, unless no server measured it. `servers` is (n_servers, n_rounds).
template <class Item>
void add_row(side_by_side& table, const char* title, const std::vector<std::vector<Item>>& servers,
             double Item::*member, bool more_is_better) {
  side_row row{{title}, {}, more_is_better};
  bool any = false;
  for (const auto& rounds : servers) {
    row.values.push_back({values_of(rounds, member), "", ""});
    for (const double value : row.values.back().rounds)
      any = any || value > 0;
  }
  if (any) table.rows.push_back(std::move(row));
}

std::string rounds_text(std::size_t rounds) {
  if (rounds == 1) return "1 round";
  return std::to_string(rounds) + " rounds by turns: median (least to most)";
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

std::string load_remarks(const run_plan& plan, const planned_load& load,
                         const std::vector<std::vector<run_figures>>& servers) {
  std::string out;
  std::vector<double> lengths;
  for (std::size_t s = 0; s < servers.size(); ++s) {
    std::vector<const run_figures*> rounds;
    for (const run_figures& each : servers[s])
      rounds.push_back(&each);
    for (const std::string& doubt : doubts_about(total_of(rounds), load.load.ignore_eos))
      out += "- WARNING: " + plan.servers[s].name + ": " + doubt + "\n";
    lengths.push_back(percentile(values_of(servers[s], &run_figures::output_tokens), 50));
  }
  const auto [least, most] = std::minmax_element(lengths.begin(), lengths.end());
  if (lengths_differ(*least, *most))
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
    side_by_side table = table_of(plan, "");
    for (const figure_entry& each : all_figures())
      if (each.title != nullptr)
        add_row(table, each.title, servers, each.member, each.more_is_better);
    out += "## " + plan.loads[l].name + "\n\n" + about(plan.loads[l]) + "; " +
           rounds_text(servers[0].size()) + "\n\n" + side_by_side_markdown(table);
    const std::string remarks = load_remarks(plan, plan.loads[l], servers);
    out += remarks.empty() ? "\n" : "\n" + remarks + "\n";
  }
  side_by_side starts = table_of(plan, "after exec");
  add_row(starts, "ready (s)", result.starts, &server_start::ready_s, false);
  add_row(starts, "first token received (s)", result.starts, &server_start::first_token_s, false);
  out += "## start\n\n" + side_by_side_markdown(starts);
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
      for (const figure_entry& each : all_figures())
        rounds[each.key] = numbers(values_of(result.rounds[l][s], each.member));
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
