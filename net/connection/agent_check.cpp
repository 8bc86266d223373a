#include "net/connection/agent_check.hpp"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <chrono>
#include <utility>

namespace twill::net {
namespace {

/// Pause before the next accept after an accept has failed, for example for lack of descriptors.
constexpr std::chrono::milliseconds accept_pause{100};

} // namespace

std::string agent_line(bool takes_requests, std::int64_t taken_places, std::int64_t all_places) {
  if (!takes_requests) return "drain\n";
  const auto free = std::max<std::int64_t>(all_places - taken_places, 0);
  const auto percent = all_places > 0 ? free * 100 / all_places : 0;
  return "up ready " + std::to_string(std::max<std::int64_t>(percent, 1)) + "%\n";
}

agent_check::agent_check(const asio::any_io_executor& strand, listeners& sockets,
                         std::function<std::string()> line)
    : line_(std::move(line)) {
  for (std::size_t i = 0; i < sockets.all().size(); ++i) {
    const asio::generic::stream_protocol protocol(sockets.all()[i].family, 0);
    listening_.push_back({acceptor(strand, protocol, sockets.take(i)), asio::steady_timer(strand)});
  }
}

void agent_check::begin() {
  for (auto& one : listening_)
    accept(one);
}

void agent_check::stop() {
  error_code ignored;
  for (auto& one : listening_) {
    one.socket.close(ignored);
    one.pause.cancel();
  }
}

void agent_check::accept(listening_socket& at) {
  if (!at.socket.is_open()) return;
  at.socket.async_accept([this, &at](error_code error, acceptor::protocol_type::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (error) {
      at.pause.expires_after(accept_pause);
      return at.pause.async_wait([this, &at](error_code cancelled) {
        if (!cancelled) accept(at);
      });
    }
    // The send buffer of a new socket always has room for one line, so this write cannot block.
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.write_some(asio::buffer(line_()), ignored);
    socket.shutdown(asio::socket_base::shutdown_both, ignored);
    accept(at);
  });
}

} // namespace twill::net
