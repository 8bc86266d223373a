// Aliases for Boost.Asio and Beast. Only net's .cpp files, and headers that only those files
// include, may include this header.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/error.hpp>

namespace boost::asio {}
namespace boost::beast::http {}
namespace boost::beast::websocket {}

namespace twill::net {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace websocket = boost::beast::websocket;
using tcp = boost::asio::ip::tcp;
using boost::beast::error_code;

} // namespace twill::net
