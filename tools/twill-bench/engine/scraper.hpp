// scraper: reads a server's /metrics (Prometheus' text format) again and again while a run goes on.
//
// One thread of its own, from the constructor to finish(). A server without /metrics gives an empty
// log. Histogram buckets are left out; their sums and counts are kept.
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
  bool counter = false;                          ///< only rises: shown as a rate
  std::vector<std::pair<double, double>> points; ///< (seconds since the start, value)
};
using scrape_log = std::map<std::string, scraped_series>; ///< by name with labels

/// Adds one scrape to the log.
void read_exposition(std::string_view text, double at_s, scrape_log& into);

class scraper {
public:
  /// The options' `scrape_interval` says how often; 0 scrapes nothing. They outlive the scraper.
  explicit scraper(const serve_options& options);
  ~scraper();
  scraper(const scraper&) = delete;
  scraper& operator=(const scraper&) = delete;

  /// Ends the thread.
  scrape_log finish();

private:
  void scrape(const serve_options& options);

  std::atomic<bool> over_{false};
  scrape_log log_;
  std::thread thread_;
};

} // namespace twill::bench
