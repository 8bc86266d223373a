// handshake_stream: the stream that Beast's WebSocket handshake reads from. It passes on only the
// HTTP head. Bytes after the head that arrived in the same read stay in this object, for the code
// that reads frames.
//
// Only one thread may use an object. The object lives as long as the handshake.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/stream_traits.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace twill::bench {

template <class NextLayer>
class handshake_stream {
public:
  using next_layer_type = NextLayer;
  using executor_type = typename next_layer_type::executor_type;

  explicit handshake_stream(next_layer_type& next) : next_(next) {}

  executor_type get_executor() { return next_.get_executor(); }
  next_layer_type& next_layer() { return next_; }
  const next_layer_type& next_layer() const { return next_; }
  /// The bytes that arrived after the head.
  const std::string& early() const { return held_; }

  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return next_.async_write_some(buffers, std::forward<Token>(token));
  }

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_compose<Token, void(boost::system::error_code, std::size_t)>(
        read_op<Buffers>{*this, buffers}, token, next_);
  }

private:
  template <class Buffers>
  struct read_op {
    handshake_stream& on;
    Buffers buffers;
    bool begun = false;

    template <class Self>
    void operator()(Self& self, boost::system::error_code error = {}, std::size_t n = 0) {
      if (!std::exchange(begun, true)) {
        if (on.held_.empty())
          return on.next_.async_read_some(boost::asio::buffer(on.block_), std::move(self));
        return boost::asio::post(on.get_executor(), std::move(self));
      }
      on.held_.append(on.block_.data(), n);
      const std::size_t given =
          boost::asio::buffer_copy(buffers, boost::asio::buffer(on.held_, on.head_bytes()));
      on.count(given);
      self.complete(error, given);
    }
  };

  static constexpr std::string_view head_end = "\r\n\r\n";

  /// `held_` has the bytes that were read but not yet passed on. Returns how many of them may be
  /// passed on now: those up to the end of the HTTP head. When the whole head has been passed on,
  /// the result is all of `held_`, which is then the body of a reply that declines the handshake.
  std::size_t head_bytes() const {
    std::size_t matched = matched_;
    for (std::size_t i = 0; i < held_.size() && matched_ < head_end.size(); ++i)
      if ((matched = advance(matched, held_[i])) == head_end.size()) return i + 1;
    return held_.size();
  }
  void count(std::size_t given) {
    for (std::size_t i = 0; i < given && matched_ < head_end.size(); ++i)
      matched_ = advance(matched_, held_[i]);
    held_.erase(0, given);
  }
  static std::size_t advance(std::size_t matched, char c) {
    if (c == head_end[matched]) return matched + 1;
    return c == head_end[0] ? 1 : 0;
  }

  next_layer_type& next_;
  std::array<char, 4096> block_{};
  std::string held_;
  std::size_t matched_ = 0; ///< characters of `head_end` that the bytes passed on so far end with
};

} // namespace twill::bench
