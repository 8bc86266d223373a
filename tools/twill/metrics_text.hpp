// metrics_text: reads the text format of Prometheus, as far as a daemon's /metrics uses it. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace twill::tools {

struct metric_sample {
  std::string name; ///< without twill's prefix
  std::map<std::string, std::string> labels;
  double value = 0;
};

/// The samples of a scrape that have twill's prefix, in their order. Other lines are left out.
std::vector<metric_sample> read_metrics(std::string_view text);

} // namespace twill::tools
