// scraper: reads a server's /metrics (Prometheus text format) at regular intervals during a run.
//
// It has a thread of its own from the constructor to finish(). A server without /metrics gives an
// empty log. Histogram buckets are left out; the sums and counts of histograms are kept.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tools/twill-bench/engine/options.hpp"

namespace twill::bench {

struct scraped_series {
  bool counter = false;                          ///< the value only rises, so reports show its rate
  std::vector<std::pair<double, double>> points; ///< (seconds since the start, value)
};
/// A map from a metric's name with its labels to the values of the metric over time.
using scrape_log = std::map<std::string, scraped_series>;

/// Adds the metrics of one scrape to the log.
void read_exposition(std::string_view text, double at_s, scrape_log& into);

class scraper {
public:
  /// Reads /metrics once per `scrape_interval` of the options. An interval of 0 reads nothing. The
  /// options must outlive the scraper.
  explicit scraper(const serve_options& options);
  ~scraper();
  scraper(const scraper&) = delete;
  scraper& operator=(const scraper&) = delete;

  /// Ends the thread and returns the log.
  scrape_log finish();

private:
  void scrape(const serve_options& options);

  std::atomic<bool> over_{false};
  scrape_log log_;
  std::thread thread_;
};

} // namespace twill::bench
