#include "tools/twill/metrics_text.hpp"

#include <cstdlib>
#include <optional>

namespace twill::tools {
namespace {

/// Parses `key="value",...}` at the front of `rest` and removes it. Returns false when the text has
/// another form.
bool take_labels(std::string_view& rest, std::map<std::string, std::string>& labels) {
  while (!rest.empty() && rest.front() != '}') {
    const auto equals = rest.find("=\"");
    if (equals == rest.npos) return false;
    const std::string key(rest.substr(0, equals));
    rest.remove_prefix(equals + 2);
    std::string text;
    for (; !rest.empty() && rest.front() != '"'; rest.remove_prefix(1)) {
      if (rest.front() == '\\' && rest.size() > 1) {
        rest.remove_prefix(1);
        text += rest.front() == 'n' ? '\n' : rest.front();
      } else {
        text += rest.front();
      }
    }
    if (rest.empty()) return false;
    rest.remove_prefix(1);
    labels[key] = std::move(text);
    if (!rest.empty() && rest.front() == ',') rest.remove_prefix(1);
  }
  if (rest.empty()) return false;
  rest.remove_prefix(1);
  return true;
}

/// The name without the prefix "twill_"; empty when it has another prefix. With `metrics.compat` a
/// daemon also reports its numbers under the names that other servers use.
std::string_view own_name(std::string_view name) {
  constexpr std::string_view prefix = "twill_";
  return name.starts_with(prefix) ? name.substr(prefix.size()) : std::string_view();
}

std::optional<metric_sample> read_line(std::string_view line) {
  if (line.empty() || line.front() == '#') return std::nullopt;
  const auto end = line.find_first_of("{ ");
  if (end == line.npos) return std::nullopt;
  metric_sample sample;
  sample.name = own_name(line.substr(0, end));
  if (sample.name.empty()) return std::nullopt;
  auto rest = line.substr(end);
  if (rest.front() == '{') {
    rest.remove_prefix(1);
    if (!take_labels(rest, sample.labels)) return std::nullopt;
  }
  const std::string number(rest);
  char* stop = nullptr;
  sample.value = std::strtod(number.c_str(), &stop);
  if (stop == number.c_str()) return std::nullopt;
  return sample;
}

} // namespace

std::vector<metric_sample> read_metrics(std::string_view text) {
  std::vector<metric_sample> samples;
  while (!text.empty()) {
    const auto end = text.find('\n');
    if (auto sample = read_line(text.substr(0, end))) samples.push_back(std::move(*sample));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return samples;
}

} // namespace twill::tools
