#include "tools/twill-bench/engine/http_reply.hpp"

#include <boost/beast/http/error.hpp>

#include <utility>

namespace twill::bench {

namespace http = boost::beast::http;
using boost::system::error_code;

http_reply::http_reply() {
  parser_.body_limit(boost::none);
}

void http_reply::on_body(handed_on_body::value_type take) {
  parser_.get().body() = std::move(take);
  parser_.eager(true);
}

error_code http_reply::parse(boost::beast::flat_buffer& bytes) {
  error_code error;
  while (bytes.size() > 0 && !parser_.is_done()) {
    const bool in_head = !parser_.is_header_done();
    const std::size_t used = parser_.put(bytes.data(), error);
    bytes.consume(used);
    if (error == http::error::need_more) return {};
    if (error || (in_head && parser_.is_header_done())) return error;
    if (used == 0) return {};
  }
  return {};
}

error_code http_reply::parse_end() {
  error_code error;
  if (!parser_.got_some()) return http::error::end_of_stream;
  parser_.put_eof(error);
  return error;
}

std::string_view http_reply::content_type() const {
  const auto type = parser_.get()[http::field::content_type];
  return {type.data(), type.size()};
}

} // namespace twill::bench
