// http_reply: parses one HTTP/1.1 reply from a byte stream. It uses Beast's parser without Beast's
// sockets, so that all chunks that one read brought are parsed in one pass. Only one thread at a
// time may use an object.
#pragma once

#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace twill::bench {

/// A Beast "Body" that passes each piece of the body to a callback as it is parsed.
struct handed_on_body {
  using value_type = std::function<void(std::string_view)>;

  class reader {
  public:
    template <bool is_request, class Fields>
    reader(boost::beast::http::header<is_request, Fields>&, value_type& take) : take_(take) {}

    void init(const boost::optional<std::uint64_t>&, boost::system::error_code& error) {
      error = {};
    }
    template <class Buffers>
    std::size_t put(const Buffers& buffers, boost::system::error_code& error) {
      error = {};
      std::size_t n = 0;
      for (const boost::asio::const_buffer piece : boost::beast::buffers_range_ref(buffers)) {
        take_({static_cast<const char*>(piece.data()), piece.size()});
        n += piece.size();
      }
      return n;
    }
    void finish(boost::system::error_code& error) { error = {}; }

  private:
    value_type& take_;
  };
};

class http_reply {
public:
  http_reply();

  /// Sets the callback for the body. Call it before the body is parsed.
  void on_body(handed_on_body::value_type take);
  /// Parses the bytes in the buffer and removes them. The call that completes the HTTP head stops
  /// at the end of the head, so that the caller can choose how to treat the body.
  boost::system::error_code parse(boost::beast::flat_buffer& bytes);
  /// To be called when the connection has ended. Returns an error when the reply is not complete.
  boost::system::error_code parse_end();

  bool has_any() const { return parser_.got_some(); }
  bool has_head() const { return parser_.is_header_done(); }
  bool is_done() const { return parser_.is_done(); }
  int status() const { return static_cast<int>(parser_.get().result_int()); }
  bool keep_alive() const { return parser_.keep_alive(); }
  std::string_view content_type() const;

private:
  boost::beast::http::response_parser<handed_on_body> parser_;
};

} // namespace twill::bench
