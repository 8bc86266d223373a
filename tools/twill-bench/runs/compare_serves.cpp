// compare_serves: compares result files of `serve`, or of any tool that writes vLLM's keys.
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include <stdexcept>
#include <string_view>

#include "tools/twill-bench/engine/text.hpp"
#include "tools/twill-bench/report/markdown.hpp"
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
  std::vector<std::string> names{""};
  for (const auto& [name, text] : named_texts) {
    boost::system::error_code error;
    const json::value root = json::parse(text, error);
    if (error || !root.is_object() || !root.as_object().contains("request_throughput"))
      throw std::runtime_error(name + ": no result of serve (it has no request_throughput)");
    names.push_back(name);
    if (!runs.empty()) names.push_back("/ " + named_texts[0].first);
    runs.push_back(root.as_object());
  }
  std::string out = markdown_heading(names, ":---");
  for (const auto& member : runs[0]) {
    if (!is_figure(member.key()) || !member.value().is_number()) continue;
    const double first = member.value().to_number<double>();
    std::vector<std::string> cells{std::string(member.key()), fixed(first, 2)};
    for (std::size_t i = 1; i < runs.size(); ++i) {
      const json::value* here = runs[i].if_contains(member.key());
      if (here == nullptr || !here->is_number()) {
        cells.insert(cells.end(), 2, "");
        continue;
      }
      const double value = here->to_number<double>();
      cells.push_back(fixed(value, 2));
      cells.push_back(first == 0 ? "" : fixed(value / first, 2));
    }
    out += markdown_row(cells);
  }
  return out;
}

} // namespace twill::bench
