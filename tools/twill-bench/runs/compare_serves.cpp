// compare_serves: compares result files of `serve`, or of any tool that writes vLLM's keys.
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include <stdexcept>
#include <string_view>

#include "tools/twill-bench/report/side_by_side.hpp"
#include "tools/twill-bench/runs/compare.hpp"

namespace twill::bench {
namespace {

namespace json = boost::json;

/// Latencies are recognised by how the key ends, other figures by the whole key.
bool is_figure(std::string_view key) {
  constexpr std::string_view ms = "_ms";
  if (key.size() > ms.size() && key.substr(key.size() - ms.size()) == ms) return true;
  for (const std::string_view known :
       {"num_prompts", "max_concurrency", "duration", "completed", "failed", "total_input_tokens",
        "total_output_tokens", "request_throughput", "request_goodput", "output_throughput",
        "total_token_throughput", "max_output_tokens_per_s", "max_concurrent_requests"})
    if (key == known) return true;
  return false;
}

} // namespace

std::string compare_serves(const std::vector<std::pair<std::string, std::string>>& named_texts) {
  std::vector<json::object> runs;
  side_by_side table;
  table.labels = {""};
  for (const auto& [name, text] : named_texts) {
    boost::system::error_code error;
    const json::value root = json::parse(text, error);
    if (error || !root.is_object() || !root.as_object().contains("request_throughput"))
      throw std::runtime_error(name + ": no result of serve (it has no request_throughput)");
    table.runs.push_back({name});
    runs.push_back(root.as_object());
  }
  for (const auto& member : runs[0]) {
    if (!is_figure(member.key()) || !member.value().is_number()) continue;
    side_row row{{member.key()}, {}};
    for (const json::object& run : runs) {
      const json::value* here = run.if_contains(member.key());
      row.values.emplace_back();
      if (here != nullptr && here->is_number())
        row.values.back().rounds = {here->to_number<double>()};
    }
    table.rows.push_back(std::move(row));
  }
  return side_by_side_markdown(table);
}

} // namespace twill::bench
