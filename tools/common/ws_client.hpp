// ws_client: one WebSocket to the daemon, text frames in and out.
//
// A thread of its own reads and writes the socket, so that pings are answered while the owner waits
// for a user. One owner thread calls the functions below. What has arrived and was not yet taken is
// kept up to a bound; beyond it reading pauses, and TCP slows the daemon down.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tools/common/endpoint.hpp"

namespace twill::tools {

/// The server answered the handshake with a status of its own.
class ws_refused : public client_error {
public:
  ws_refused(const std::string& words, int status, std::string body)
      : client_error(words), status(status), body(std::move(body)) {}
  int status;
  std::string body;
};

class ws_client {
public:
  /// Connects and shakes hands within `timeout`; throws client_error with the reason, which may be
  /// a ws_refused.
  ws_client(const endpoint& where, const std::string& path, std::chrono::milliseconds timeout);
  ~ws_client();

  /// Queues one text frame; throws client_error once the connection is lost.
  void send(std::string text);

  /// The next text frame; nothing when none came within `timeout`. Throws client_error when the
  /// connection is lost and every frame that arrived before has been taken.
  std::optional<std::string> receive(std::chrono::milliseconds timeout);

  bool lost() const;

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace twill::tools
