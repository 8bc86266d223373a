#include "net/server.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <charconv>
#include <mutex>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "config/base/log.hpp"
#include "net/batch/batch_service.hpp"
#include "net/beast.hpp"
#include "net/http/http_session.hpp"

namespace twill::net {
namespace {

using std::chrono::milliseconds;

/// The kernel buffers this much unsent output per socket; the rest is bounded by the write queue.
constexpr int send_buffer_bytes = 256 * 1024;
constexpr milliseconds accept_pause{
    100}; ///< before the next try when there are no file descriptors
constexpr milliseconds drain_poll{20};
constexpr milliseconds flush_grace{1200}; ///< in which the last frames leave

struct address {
  std::string host;
  std::uint16_t port = 0;
};

/// HOST:PORT, where HOST may be [v6].
address split_address(const std::string& text) {
  const auto colon = text.rfind(':');
  address out;
  const auto* end = text.data() + text.size();
  bool valid = colon != std::string::npos && colon + 1 < text.size();
  if (valid) {
    const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, out.port);
    valid = error == std::errc{} && stop == end;
  }
  if (!valid) throw std::runtime_error("`server.listen` must be HOST:PORT, got \"" + text + "\"");
  out.host = text.substr(0, colon);
  if (out.host.size() > 1 && out.host.front() == '[' && out.host.back() == ']')
    out.host = out.host.substr(1, out.host.size() - 2);
  return out;
}

/// Whom a socket is counted for: an IPv4 address or an IPv6 /64; empty: counted only over all.
std::string client_of(asio::ip::address address, const config::server_options& options) {
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  if (options.max_per_address < 0 && address.is_loopback()) return {};
  if (address.is_v4()) return address.to_string();
  const auto bytes = address.to_v6().to_bytes();
  return std::string(bytes.begin(), bytes.begin() + 8);
}

/// Work whose lack of memory does not end the process.
std::function<void()> tolerant(std::function<void()> work) {
  return [work = std::move(work)] {
    try {
      work();
    } catch (const std::bad_alloc&) {
      log::error("out of memory: the work of a request is dropped");
    }
  };
}

class server_impl final : public server {
public:
  server_impl(const config::options& options, actors::engine_port& engine)
      : context_(options, engine), io_(options.server.threads), workers_(1),
        control_(asio::make_strand(io_)), acceptor_(control_), accept_timer_(control_),
        drain_timer_(control_), alive_(std::make_shared<lifeline>()), batch_thread_(1),
        batch_timer_(batch_thread_),
        batches_(context_, {[this](std::function<void()> work) {
                              asio::post(batch_thread_, tolerant(std::move(work)));
                            },
                            [this](milliseconds time) { wake_batches_after(time); }}) {
    alive_->owner = this;
    context_.batches = &batches_;
    context_.run_on_worker = [this](std::function<void()> work) {
      asio::post(workers_, tolerant(std::move(work)));
    };
    listen(options.server.listen);
  }

  ~server_impl() override {
    {
      const std::lock_guard lock(alive_->mutex);
      alive_->owner = nullptr;
    }
    batches_.stop();
    asio::post(batch_thread_, [this] { batch_timer_.cancel(); });
    batch_thread_.join();
    workers_.join();
  }

  std::string host() const override { return endpoint_.address().to_string(); }
  std::uint16_t port() const override { return endpoint_.port(); }

  void run() override {
    asio::post(control_, [this] { accept(); });
    std::vector<std::thread> others;
    for (int i = 1; i < context_.options.server.threads; ++i)
      others.emplace_back([this] { serve(); });
    serve();
    for (auto& thread : others)
      thread.join();
  }

  void drain() override {
    if (context_.draining.exchange(true)) return;
    asio::post(control_, [this] { begin_drain(); });
  }

  void stop() override {
    if (stopping_.exchange(true)) return;
    context_.draining = true;
    asio::post(control_, [this] { close_all(); });
  }

private:
  /// Without memory a socket is lost, and not the server.
  void serve() {
    for (;;) {
      try {
        io_.run();
        return;
      } catch (const std::bad_alloc&) {
        log::error("out of memory: a connection is closed");
      }
    }
  }

  /// Lets an engine's late callback find out that the server is gone.
  struct lifeline {
    std::mutex mutex;
    server_impl* owner = nullptr;
  };

  void listen(const std::string& where) {
    const auto wanted = split_address(where);
    try {
      tcp::resolver resolver(io_);
      const auto found =
          resolver.resolve(wanted.host, std::to_string(wanted.port), tcp::resolver::passive);
      endpoint_ = found.begin()->endpoint();
      acceptor_.open(endpoint_.protocol());
      acceptor_.set_option(tcp::acceptor::reuse_address(true));
      acceptor_.bind(endpoint_);
      acceptor_.listen(asio::socket_base::max_listen_connections);
      endpoint_ = acceptor_.local_endpoint();
    } catch (const boost::system::system_error& error) {
      throw std::runtime_error("cannot listen on `server.listen` " + where + ": " +
                               error.code().message());
    }
  }

  void wake_batches_after(milliseconds time) {
    batch_timer_.expires_after(time);
    batch_timer_.async_wait([this](error_code cancelled) {
      if (!cancelled) batches_.on_timer();
    });
  }

  void accept() {
    if (!acceptor_.is_open()) return;
    acceptor_.async_accept(asio::make_strand(io_), [this](error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (error) return retry_accept(error);
      adopt(std::move(socket));
      accept();
    });
  }

  void retry_accept(error_code error) {
    log::warn("accept: " + error.message());
    accept_timer_.expires_after(accept_pause);
    accept_timer_.async_wait([this](error_code cancelled) {
      if (!cancelled) accept();
    });
  }

  void adopt(tcp::socket socket) {
    error_code ignored;
    const auto peer = socket.remote_endpoint(ignored).address();
    auto ticket = context_.sockets.admit(client_of(peer, context_.options.server));
    if (!ticket.has_value()) {
      log::warn("a connection of " + peer.to_string() +
                " was closed at once: `server.max_connections` or `server.max_per_address` is "
                "reached");
      return;
    }
    socket.set_option(tcp::no_delay(true), ignored);
    socket.set_option(asio::socket_base::send_buffer_size(send_buffer_bytes), ignored);
    const auto strand = socket.get_executor();
    asio::post(strand, [this, socket = std::move(socket), ticket = std::move(*ticket)]() mutable {
      start_http_session(std::move(socket), std::move(ticket), context_);
    });
  }

  // --- the end, all on control_ -----------------------------------------------------------------

  void begin_drain() {
    log::info("draining");
    batches_.stop();
    context_.engine.drain([alive = alive_] {
      const std::lock_guard lock(alive->mutex);
      if (auto* self = alive->owner) asio::post(self->control_, [self] { self->on_drained(); });
    });
    for (const auto& one : context_.sessions.all())
      one->begin_drain();
    drain_timer_.expires_after(context_.options.server.drain_timeout);
    drain_timer_.async_wait([this](error_code cancelled) {
      if (cancelled || drained_) return;
      log::warn("`server.drain_timeout` passed: ending the requests that are left");
      context_.engine.abort_all();
      on_drained();
    });
  }

  void on_drained() {
    if (drained_) return;
    drained_ = true;
    drain_timer_.cancel();
    for (const auto& one : context_.sessions.all())
      one->begin_drain(); // sockets accepted since the drain began
    await_sessions(std::chrono::steady_clock::now() + flush_grace);
  }

  /// Sessions close by themselves once their last bytes are written.
  void await_sessions(std::chrono::steady_clock::time_point until) {
    if (context_.sessions.size() == 0 || std::chrono::steady_clock::now() >= until)
      return close_all();
    drain_timer_.expires_after(drain_poll);
    drain_timer_.async_wait([this, until](error_code cancelled) {
      if (!cancelled) await_sessions(until);
    });
  }

  void close_all() {
    error_code ignored;
    acceptor_.close(ignored);
    accept_timer_.cancel();
    drain_timer_.cancel();
    for (const auto& one : context_.sessions.all())
      one->close_now();
    // The sessions close on their strands first, then their handlers run, then this timer fires.
    drain_timer_.expires_after(drain_poll);
    drain_timer_.async_wait([this](error_code) { io_.stop(); });
  }

  server_context context_;
  asio::io_context io_; // sessions die with it, so before the context
  asio::thread_pool workers_;
  asio::strand<asio::io_context::executor_type> control_;
  tcp::acceptor acceptor_;
  asio::steady_timer accept_timer_;
  asio::steady_timer drain_timer_;
  std::shared_ptr<lifeline> alive_;
  asio::thread_pool batch_thread_;
  asio::steady_timer batch_timer_;
  batch_service batches_;
  tcp::endpoint endpoint_;
  std::atomic<bool> stopping_{false};
  bool drained_ = false;
};

} // namespace

std::unique_ptr<server> server::bind(const config::options& options, actors::engine_port& engine) {
  return std::make_unique<server_impl>(options, engine);
}

} // namespace twill::net
