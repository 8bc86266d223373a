// shard: one I/O thread of the engine, with its io_context, its connections and its share of the
// workers.
//
// open() and run() block the thread that calls them; stop() and close_intake() may be called from
// any thread. A worker is a coroutine that takes the next conversation (mostly a single request),
// again and again, and sends each of its turns when it is due.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <memory>
#include <set>
#include <vector>

#include "tools/twill-bench/engine/job.hpp"
#include "tools/twill-bench/engine/timekeeper.hpp"
#include "tools/twill-bench/engine/transport.hpp"

namespace twill::bench {

class shard {
public:
  shard(timekeeper& time, const transport_factory& make_transport, const route& where,
        const protocol& dialect);
  ~shard();

  /// Throws std::runtime_error when the shared sockets can't be opened.
  void open();
  /// Runs n_workers workers until no conversation is left.
  void run(job& work, std::size_t n_workers);
  /// Ends running exchanges as interrupted and wakes sleeping workers.
  void stop();
  /// Wakes sleeping workers; running exchanges go on.
  void close_intake();

  double cpu_s() const { return cpu_s_; } ///< CPU time of the latest run()
  /// How late each expiry of a periodic timer was in the latest run(). Late expiries show that the
  /// client itself was delayed.
  const std::vector<double>& lags_ms() const { return lags_ms_; }

private:
  boost::asio::awaitable<void> worker(job& work);
  boost::asio::awaitable<void> converse(job& work, std::size_t first, std::size_t last,
                                        alarm& timer);
  boost::asio::awaitable<void> one(job& work, std::size_t i, const prompt& asked);
  boost::asio::awaitable<void> sleep_until(alarm& timer, clock::time_point when);
  boost::asio::awaitable<void> measure_lag();

  timekeeper& time_;
  boost::asio::io_context context_{1};
  std::unique_ptr<alarm> beat_;
  std::unique_ptr<transport> wire_;
  std::set<alarm*> sleeping_;
  std::vector<double> lags_ms_;
  std::size_t workers_ = 0;
  double cpu_s_ = 0;
  bool fresh_beat_ = true;
  bool closing_ = false;
};

} // namespace twill::bench
