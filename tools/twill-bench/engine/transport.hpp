// transport: carries exchanges over sockets. One object per I/O thread; every call and every
// completion is on that thread.
//
// It keeps idle connections for reuse, takes a time stamp as soon as a read completes (all events
// that the read brought share it), and ends each exchange with exactly one outcome. It throws
// nothing but std::bad_alloc.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/twill-bench/engine/endpoint.hpp"
#include "tools/twill-bench/engine/exchange.hpp"
#include "tools/twill-bench/engine/options.hpp"
#include "tools/twill-bench/engine/server_stream.hpp"

namespace twill::bench {

struct route {
  endpoint server;
  std::string path;
  std::vector<name_value> headers;
  server_address address;
  std::chrono::duration<double> timeout{600}; ///< of one request
  bool stream = true;
  bool keep_alive = true;
  std::size_t connections = 0; ///< WebSocket: multiplex over so many; 0: one request per socket
};

class transport {
public:
  virtual ~transport() = default;

  /// Opens what must be open before the clock starts; false (and `why`) when that fails.
  virtual boost::asio::awaitable<bool> open(std::string& why) = 0;
  /// Sends the message and feeds the exchange until it has its outcome.
  virtual boost::asio::awaitable<void> perform(exchange& request, std::string message) = 0;
  /// Ends every running exchange as interrupted and every later one at once.
  virtual void interrupt() = 0;
  /// Closes all connections.
  virtual void close() = 0;
};

using transport_factory = std::function<std::unique_ptr<transport>(
    boost::asio::io_context& context, const route& where, const protocol& dialect)>;

std::unique_ptr<transport> make_http_transport(boost::asio::io_context& context, route where);
std::unique_ptr<transport> make_websocket_transport(boost::asio::io_context& context, route where,
                                                    const protocol& dialect);

} // namespace twill::bench
