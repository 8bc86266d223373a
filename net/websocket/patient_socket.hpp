// patient_socket: a TCP socket that Beast's WebSocket neither tears down nor closes by itself.
//
// Beast closes right after its close frame; with input unread, the kernel then resets the
// connection and the client may never see the frame. The session closes this socket itself, after
// lingering. Where Beast would close (its time-outs), pending operations are cancelled instead,
// which ends them as well.
#pragma once

#include <boost/asio/post.hpp>
#include <boost/beast/core/bind_handler.hpp>
#include <boost/beast/core/role.hpp>
#include <utility>

#include "net/beast.hpp"

namespace twill::net {

class patient_socket : public tcp::socket {
public:
  explicit patient_socket(tcp::socket&& from) : tcp::socket(std::move(from)) {}
};

// Beast finds these by argument-dependent lookup.
inline void teardown(beast::role_type, patient_socket&, error_code& error) {
  error = {};
}

template <class Handler>
void async_teardown(beast::role_type, patient_socket& socket, Handler&& handler) {
  asio::post(socket.get_executor(),
             beast::bind_front_handler(std::forward<Handler>(handler), error_code()));
}

inline void beast_close_socket(patient_socket& socket) {
  error_code ignored;
  socket.cancel(ignored);
}

} // namespace twill::net
