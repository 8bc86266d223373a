// output_relief: disconnects clients that do not read, until the unread output of all sockets fits
// its budget again (see output_budget), and then gives free memory back to the system.
//
// Call all functions on the strand that is given to the constructor. The context, the strand and
// `stopping` must outlive the object. While `stopping` is true, no further disconnects are
// scheduled.
#pragma once

#include <atomic>
#include <boost/asio/steady_timer.hpp>

#include "net/beast.hpp"
#include "net/server_context.hpp"

namespace twill::net {

class output_relief {
public:
  output_relief(server_context& context, const asio::any_io_executor& strand,
                const std::atomic<bool>& stopping)
      : context_(context), stopping_(stopping), timer_(strand) {}

  /// Begins to disconnect clients, or does nothing while that is under way.
  void begin();
  void stop() { timer_.cancel(); }

private:
  server_context& context_;
  const std::atomic<bool>& stopping_;
  asio::steady_timer timer_;
  bool relieving_ = false;
};

} // namespace twill::net
