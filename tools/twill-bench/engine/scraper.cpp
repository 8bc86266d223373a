#include "tools/twill-bench/engine/scraper.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <set>

#include "tools/twill-bench/engine/control_client.hpp"
#include "tools/twill-bench/engine/record.hpp"

namespace twill::bench {
namespace {

constexpr std::size_t most_series = 2000;

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

/// Reads a line "# TYPE name kind" and adds the names that are counters to the set.
void read_type(std::string_view line, std::set<std::string, std::less<>>& counters) {
  constexpr std::string_view mark = "# TYPE ";
  if (line.substr(0, mark.size()) != mark) return;
  line.remove_prefix(mark.size());
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return;
  const std::string name(line.substr(0, space));
  const std::string_view kind = line.substr(space + 1);
  if (kind == "counter") counters.insert(name);
  if (kind == "histogram" || kind == "summary") {
    counters.insert(name + "_sum");
    counters.insert(name + "_count");
  }
}

} // namespace

void read_exposition(std::string_view text, double at_s, scrape_log& into) {
  std::set<std::string, std::less<>> counters;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (!line.empty() && line.front() == '#') {
      read_type(line, counters);
      continue;
    }
    const std::size_t brace = line.find('{');
    const std::size_t labels_end = brace == std::string_view::npos ? 0 : line.rfind('}');
    if (labels_end == std::string_view::npos) continue;
    const std::size_t space = line.find(' ', labels_end);
    if (space == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, std::min(brace, space));
    if (ends_with(name, "_bucket") || ends_with(name, "_created")) continue;
    const double value = std::strtod(std::string(line.substr(space + 1)).c_str(), nullptr);
    if (!std::isfinite(value)) continue;
    const std::string key(line.substr(0, space));
    if (into.size() >= most_series && into.find(key) == into.end()) continue;
    scraped_series& series = into[key];
    series.counter = counters.count(name) > 0;
    series.points.emplace_back(at_s, value);
  }
}

scraper::scraper(const serve_options& options) {
  if (options.scrape_interval.count() <= 0) return;
  thread_ = std::thread([this, &options] { scrape(options); });
}

scraper::~scraper() {
  finish();
}

void scraper::scrape(const serve_options& options) {
  const clock::time_point begin = clock::now();
  control_client client(options.base_url, options.headers, options.cacert);
  clock::time_point next = begin;
  for (bool last = false; !last;) {
    last = over_; // read once more after the end of the run, so that counters include all of it
    if (!last && clock::now() < next) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      continue;
    }
    const double at_s = std::chrono::duration<double>(clock::now() - begin).count();
    const reply answer = client.get("/metrics");
    if (answer.ok()) read_exposition(answer.body, at_s, log_);
    next += std::chrono::duration_cast<clock::duration>(options.scrape_interval);
  }
}

scrape_log scraper::finish() {
  over_ = true;
  if (thread_.joinable()) thread_.join();
  return std::move(log_);
}

} // namespace twill::bench
