// websocket_link: one WebSocket and the requests that wait for its messages. Beast does the
// handshake; after that, this class reads and writes the frames. All messages in the bytes of one
// read are passed to their requests with one time stamp, which is taken as soon as the read
// completes.
//
// Only one thread may use an object. Pending operations keep the object alive.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tools/twill-bench/engine/transport.hpp"
#include "tools/twill-bench/engine/ws_frames.hpp"

namespace twill::bench {

/// An exchange (one request with its reply, exchange.hpp) whose coroutine waits on the timer `wake`
/// until the exchange has its outcome, its deadline passes, or its socket ends.
struct waiter {
  waiter(boost::asio::io_context& context, exchange& change) : ex(change), wake(context) {}
  exchange& ex;
  boost::asio::steady_timer wake;
};

class websocket_link : public std::enable_shared_from_this<websocket_link> {
public:
  /// `masks` generates the masking keys of the frames that this client sends. `shared` says that
  /// several requests use the socket at once.
  websocket_link(boost::asio::io_context& context, const protocol& dialect, std::mt19937& masks,
                 bool shared)
      : dialect_(dialect), masks_(masks), shared_(shared), stream_(context) {}

  boost::asio::awaitable<boost::system::error_code> open(const route& where,
                                                         clock::time_point deadline);
  /// Why open() failed, where the error code alone does not say it: the reason why the certificate
  /// is not trusted, or the body of a reply that declined the upgrade.
  const std::string& why_not_open() const { return why_not_open_; }
  /// HTTP status of the reply that declined the upgrade; 0 when the upgrade was not declined.
  int declined_status() const { return declined_status_; }
  void send(std::string_view message);

  void add(waiter& who) { waiting_[who.ex.id()] = &who; }
  void remove(const waiter& who) { waiting_.erase(who.ex.id()); }
  std::size_t load() const { return waiting_.size(); }
  bool sent_all() const { return unsent_.empty() && in_write_.empty(); }
  bool shared() const { return shared_; }

  bool dead() const { return dead_; }
  const std::string& why() const { return why_; }
  const char* why_kind() const { return why_kind_; } ///< one of the values of record::error_kind
  /// Closes the socket without sending a close frame.
  void shut(std::string why, const char* kind = "reset");

private:
  void read();
  void take(std::string_view bytes, clock::time_point at);
  void take_frame(ws_opcode kind, std::string_view payload, clock::time_point at);
  void deliver(std::string_view payload, clock::time_point at);
  void deliver_unnamed(const update& change, std::string_view payload, clock::time_point at);
  void send_frame(ws_opcode kind, std::string_view payload);
  void write();
  void written(const boost::system::error_code& error);

  static constexpr std::size_t most_message_bytes = 64u << 20;

  const protocol& dialect_;
  std::mt19937& masks_;
  bool shared_;
  server_stream stream_;
  ws_reader reader_{false, most_message_bytes};
  std::array<char, 16 * 1024> block_{}; ///< bytes of the latest read
  std::string unsent_, in_write_;       ///< encoded frames
  std::unordered_map<std::size_t, waiter*> waiting_;
  bool dead_ = false;
  std::string why_;
  const char* why_kind_ = "reset";
  std::string why_not_open_;
  int declined_status_ = 0;
};

} // namespace twill::bench
