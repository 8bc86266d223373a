// ws_client: a WebSocket connection to the daemon that sends and receives text frames.
//
// An internal thread reads and writes the socket, so that pings are answered while the owner waits
// for user input. Only one thread, the owner, may call the functions below. Frames that have
// arrived but were not yet received by the owner are buffered up to a limit; at the limit the
// client stops reading, and TCP flow control slows the daemon down.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tools/common/endpoint.hpp"

namespace twill::tools {

/// The server declined the WebSocket handshake with an HTTP status.
class ws_refused : public client_error {
public:
  ws_refused(const std::string& words, int status, std::string body)
      : client_error(words), status(status), body(std::move(body)) {}
  int status;
  std::string body;
};

class ws_client {
public:
  /// Connects and performs the WebSocket handshake within `timeout`. Throws client_error with the
  /// reason; the exception is a ws_refused when the server declined.
  ws_client(const endpoint& where, const std::string& path, std::chrono::milliseconds timeout);
  ~ws_client();

  /// Queues one text frame for sending. Throws client_error when the connection is lost.
  void send(std::string text);

  /// Returns the next text frame, or nothing when none arrives within `timeout`. Throws
  /// client_error when the connection is lost and all frames that arrived before have been
  /// returned.
  std::optional<std::string> receive(std::chrono::milliseconds timeout);

  bool lost() const;

private:
  class impl;
  std::unique_ptr<impl> impl_;
};

} // namespace twill::tools
