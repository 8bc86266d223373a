// websocket_connection: the state machine of one WebSocket, without I/O: it takes events and
// returns actions.
//
// Beast handles frames, masks, pings and the bytes of the closing handshake; the dialect, which is
// the protocol inside the WebSocket, makes the text of the messages. This class decides when to
// read, which frame is written next, and when and why the socket closes. After each event the
// session must execute what these functions return: take_actions(), begin_write(), take_close(),
// wants_read() and next_deadline(). Use it on the session's strand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/connection/connection_guard.hpp"
#include "net/connection/least_rate.hpp"
#include "net/protocol/dialect.hpp"

namespace twill::net {

class websocket_connection {
public:
  using time = connection_guard::time;
  using key = engine_requests::key;

  /// A buffer that has grown beyond this size for one message or frame is freed after that message
  /// or frame.
  static constexpr std::size_t kept_buffer_bytes = 8 * 1024;

  enum class phase {
    opening, ///< the server is answering the opening handshake
    open,    ///< messages are received and frames are sent
    closing, ///< waiting frames are written, then the server's close frame
    /// the server's close frame is being sent, or was sent and the client has not answered it yet
    close_sent,
    peer_closing, ///< the client has sent its close frame, and Beast answers it
    /// the sending direction is closed, and the client has a short time to close its end
    lingering,
    closed,
  };
  struct close_frame {
    std::uint16_t code;
    std::string reason;
  };

  struct limits {
    connection_guard::limits output;
    /// The least rate at which a message must arrive, counted from its first bytes.
    least_rate input;
  };

  websocket_connection(limits l, dialect& spoken)
      : limits_(l), guard_(l.output), dialect_(spoken) {}

  phase now_in() const noexcept { return phase_; }

  void on_open();
  /// The first `so_far` bytes of a message have arrived; the rest of the message has not.
  void on_message_part(std::int64_t so_far, time now);
  void on_message(std::string_view text);
  /// Cancels all requests, sends an error frame and then closes with the close code of `error`.
  void fail(const api_error& error);
  /// Gives up the message that is being received, because other sockets need the memory. The socket
  /// is closed after an error frame and a short grace period, since the bytes of the message are
  /// freed only with the socket.
  void give_up_message(time now);
  void on_engine_events(std::vector<std::pair<key, actors::event>> events);
  void on_peer_closing(time now);
  /// Reading has failed, because the client closed the connection, sent a malformed frame, or
  /// Beast's time-out has passed.
  void on_read_failed(time now);
  void on_written();
  /// The closing handshake is complete.
  void on_close_done(time now);
  void on_deadline(time now);
  /// The socket closes as soon as the dialect is idle.
  void on_drain() { draining_ = true; }
  /// `pressed` says whether the waiting output of all sockets together is too much. If so, the
  /// requests of this socket are paused already at a much smaller amount of waiting output.
  void press(bool pressed) noexcept { guard_.press(pressed); }
  void close();

  /// Call this after every event. If the client reads slowly, the function pauses the client's
  /// requests or disconnects the client.
  void check_output(bool requests_run, time now);

  connection_actions take_actions() { return std::exchange(actions_, {}); }
  /// True if the session should read from the socket. It is false while the client reads so slowly
  /// that its requests are paused (see flow_gate.hpp), but a message that has begun is read to its
  /// end.
  bool wants_read() const noexcept {
    return phase_ == phase::open && (guard_.gate_open() || message_since_.has_value());
  }
  /// Returns the next frame to write, valid until on_written(), or nullptr if there is nothing to
  /// write now.
  const std::string* begin_write(time now);
  /// Returns the close frame, once, when no other frame has to be written before it.
  std::optional<close_frame> take_close(time now);
  time next_deadline() const;
  /// The size in bytes of the output that the client has not taken yet.
  std::size_t waiting_bytes() const { return dialect_.waiting_bytes() + frame_.size(); }

private:
  void want_close(std::uint16_t code, std::string_view reason);
  void cut_off(time now);
  time message_deadline() const;
  void linger(time now);

  const limits limits_;
  connection_guard guard_;
  dialect& dialect_;
  phase phase_ = phase::opening;
  std::string frame_; ///< the frame that is being written
  std::optional<close_frame> wanted_close_;
  std::optional<time> message_since_; ///< when the message that is being received began
  std::int64_t message_bytes_ = 0;    ///< how many bytes of that message have arrived
  connection_actions actions_;
  /// How long the client may take to answer the server's close frame.
  std::chrono::milliseconds answer_grace_{5000};
  bool writing_ = false;
  bool draining_ = false;
};

} // namespace twill::net
