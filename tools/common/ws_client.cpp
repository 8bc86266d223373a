#include "tools/common/ws_client.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/websocket.hpp>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "tools/common/dialler.hpp"

namespace twill::tools {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;
using boost::system::error_code;

constexpr std::size_t most_unread = 1024; ///< frames buffered for the owner before reading pauses

} // namespace

class ws_client::impl {
public:
  impl(endpoint where, std::string path, std::chrono::milliseconds timeout)
      : where_(std::move(where)), path_(std::move(path)), dialler_(io_, where_) {
    patience_.expires_after(timeout);
    patience_.async_wait([this](error_code cancelled) {
      if (!cancelled) dialler_.cancel();
    });
    dialler_.connect([this, timeout](std::string fault, std::unique_ptr<net::client_stream> found) {
      patience_.cancel();
      if (!fault.empty()) return lose(fault, {});
      socket_.emplace(std::move(*found));
      shake_hands(timeout);
    });
    thread_ = std::thread([this] { io_.run(); });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_ || lost_; });
  }

  /// Throws unless the handshake succeeded. A connection that was lost after the handshake is
  /// accepted, because its frames can still be received.
  void check_opened() const {
    std::lock_guard lock(mutex_);
    if (open_) return;
    if (refusal_ != 0) throw ws_refused(reason_, refusal_, answer_.body());
    throw client_error(reason_);
  }

  ~impl() {
    asio::post(io_, [this] {
      {
        std::lock_guard lock(mutex_);
        closing_ = true;
      }
      if (!socket_ || !socket_->is_open()) return io_.stop();
      // The close frame is sent as a courtesy to the daemon; sending it may take at most one
      // second.
      patience_.expires_after(std::chrono::seconds(1));
      patience_.async_wait([this](error_code) { io_.stop(); });
      socket_->async_close(websocket::close_code::normal, [this](error_code) { io_.stop(); });
    });
    thread_.join();
  }

  void send(std::string text) {
    {
      std::lock_guard lock(mutex_);
      if (lost_) throw client_error(reason_);
    }
    asio::post(io_, [this, text = std::move(text)]() mutable {
      outgoing_.push_back(std::move(text));
      if (outgoing_.size() == 1) write();
    });
  }

  std::optional<std::string> receive(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout, [this] { return !incoming_.empty() || lost_; });
    if (incoming_.empty()) {
      if (lost_) throw client_error(reason_);
      return std::nullopt;
    }
    std::string text = std::move(incoming_.front());
    incoming_.pop_front();
    if (paused_ && incoming_.size() < most_unread / 2) {
      paused_ = false;
      asio::post(io_, [this] { read(); });
    }
    return text;
  }

  bool lost() const {
    std::lock_guard lock(mutex_);
    return lost_;
  }

private:
  void shake_hands(std::chrono::milliseconds timeout) {
    auto times = websocket::stream_base::timeout::suggested(beast::role_type::client);
    times.handshake_timeout = timeout;
    times.idle_timeout = std::chrono::seconds(60);
    times.keep_alive_pings = true; // they detect a daemon that has vanished
    socket_->set_option(times);
    socket_->read_message_max(64u << 20);
    socket_->set_option(websocket::stream_base::decorator([this](websocket::request_type& request) {
      request.set(http::field::user_agent, "twill/" TWILL_VERSION);
      if (!where_.api_key.empty())
        request.set(http::field::authorization, "Bearer " + where_.api_key);
    }));
    socket_->async_handshake(answer_, where_.authority(), where_.prefix + path_,
                             [this](error_code error) {
                               if (error == websocket::error::upgrade_declined) return declined();
                               if (error.failed()) return lose("no WebSocket handshake", error);
                               {
                                 std::lock_guard lock(mutex_);
                                 open_ = true;
                               }
                               changed_.notify_all();
                               read();
                             });
  }

  void declined() {
    {
      std::lock_guard lock(mutex_);
      refusal_ = answer_.result_int();
    }
    lose("the WebSocket was refused with status " + std::to_string(answer_.result_int()) +
             (answer_.body().empty() ? "" : ": " + answer_.body()),
         {});
  }

  void read() {
    socket_->async_read(buffer_, [this](error_code error, std::size_t) {
      if (error == websocket::error::closed) {
        const auto& why = socket_->reason();
        return lose("the server closed the connection (" + std::to_string(why.code) +
                        (why.reason.empty() ? "" : ", " + std::string(why.reason.c_str())) + ")",
                    {});
      }
      if (error.failed()) return lose("connection lost", error);
      bool full = false;
      {
        std::lock_guard lock(mutex_);
        incoming_.push_back(beast::buffers_to_string(buffer_.data()));
        full = paused_ = incoming_.size() >= most_unread;
      }
      buffer_.consume(buffer_.size());
      changed_.notify_all();
      if (!full) read();
    });
  }

  void write() {
    socket_->async_write(asio::buffer(outgoing_.front()), [this](error_code error, std::size_t) {
      if (error.failed()) return lose("connection lost", error);
      outgoing_.pop_front();
      if (!outgoing_.empty()) write();
    });
  }

  void lose(const std::string& action, error_code error) {
    {
      std::lock_guard lock(mutex_);
      if (closing_ || lost_) return;
      lost_ = true;
      reason_ = where_.url() + ": " + action + (error.failed() ? " (" + error.message() + ")" : "");
    }
    changed_.notify_all();
  }

  const endpoint where_;
  const std::string path_;

  // The members up to `mutex_` are used only by the socket's thread.
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  dialler dialler_;
  std::optional<websocket::stream<net::client_stream, false>> socket_;
  http::response<http::string_body> answer_;
  beast::flat_buffer buffer_;
  std::deque<std::string> outgoing_;
  asio::steady_timer patience_{io_};

  // The members below are shared with the owner and guarded by `mutex_`.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> incoming_;
  bool paused_ = false;
  bool open_ = false;
  bool lost_ = false;
  bool closing_ = false;
  int refusal_ = 0; ///< the HTTP status with which the server declined the handshake; not changed
                    ///< afterwards
  std::string reason_;

  std::thread thread_;
};

ws_client::ws_client(const endpoint& where, const std::string& path,
                     std::chrono::milliseconds timeout)
    : impl_(std::make_unique<impl>(where, path, timeout)) {
  impl_->check_opened();
}

ws_client::~ws_client() = default;

void ws_client::send(std::string text) {
  impl_->send(std::move(text));
}

std::optional<std::string> ws_client::receive(std::chrono::milliseconds timeout) {
  return impl_->receive(timeout);
}

bool ws_client::lost() const {
  return impl_->lost();
}

} // namespace twill::tools
