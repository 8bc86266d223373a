// transport: sends requests and receives their replies over sockets. An exchange (exchange.hpp) is
// one request with its reply. Each I/O thread has its own transport; all calls and completions are
// on that thread.
//
// A transport keeps idle connections for reuse. It takes a time stamp as soon as a read completes,
// and all events in the bytes of that read get this time stamp. Each exchange ends with exactly one
// outcome. A transport throws nothing but std::bad_alloc.
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
  /// For WebSocket: all requests share this many sockets; 0: a socket carries one request at a
  /// time.
  std::size_t connections = 0;
};

class transport {
public:
  virtual ~transport() = default;

  /// Opens the connections that must be open before the run's clock starts. Returns false, with the
  /// reason in `why`, when that fails.
  virtual boost::asio::awaitable<bool> open(std::string& why) = 0;
  /// Sends the message and passes what arrives to the exchange, until the exchange has its outcome.
  virtual boost::asio::awaitable<void> perform(exchange& request, std::string message) = 0;
  /// Ends every running exchange as interrupted, and every later one as soon as it starts.
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
