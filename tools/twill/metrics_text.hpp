// metrics_text: parses Prometheus's text format, as far as a daemon's /metrics uses that format.
// The functions are pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace twill::tools {

struct metric_sample {
  std::string name; ///< without the prefix "twill_"
  std::map<std::string, std::string> labels;
  double value = 0;
};

/// Returns, in order, the samples whose names begin with "twill_". Other lines are skipped.
std::vector<metric_sample> read_metrics(std::string_view text);

} // namespace twill::tools
