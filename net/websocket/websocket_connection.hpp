// websocket_connection: one WebSocket as a state machine without I/O: events in, actions out.
//
// Frames, masks, pings and the closing handshake on the wire are Beast's, the words are the
// dialect's; this class decides when to read, which frame is written next, and when and why the
// socket closes. After each event the session does what it asks for: take_actions(), begin_write(),
// take_close(), wants_read(), next_deadline(). On the session's strand.
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

  /// A buffer that grew beyond this for one message or frame is freed after it.
  static constexpr std::size_t kept_buffer_bytes = 8 * 1024;

  enum class phase {
    opening,      ///< the handshake is being answered
    open,         ///< messages and frames go both ways
    closing,      ///< frames that wait are written, then our close frame
    close_sent,   ///< our close frame is on its way; the client answers it
    peer_closing, ///< the client sent its close frame; Beast answers it
    lingering,    ///< half-closed; the client may close its end for a moment
    closed,
  };
  struct close_frame {
    std::uint16_t code;
    std::string reason;
  };

  struct limits {
    connection_guard::limits output;
    least_rate input; ///< of messages, from their first bytes on
  };

  websocket_connection(limits l, dialect& spoken)
      : limits_(l), guard_(l.output), dialect_(spoken) {}

  phase now_in() const noexcept { return phase_; }

  void on_open();
  /// The first bytes of a message are here, `so_far` of them; the rest is to come.
  void on_message_part(std::int64_t so_far, time now);
  void on_message(std::string_view text);
  /// Ends everything with an error frame and the error's close code.
  void fail(const api_error& error);
  /// The message that is being received is given up because others need the room: fails with little
  /// patience, since its bytes are freed with the socket.
  void give_up_message(time now);
  void on_engine_events(std::vector<std::pair<key, actors::event>> events);
  void on_peer_closing(time now);
  /// Reading has ended: by the client, a broken frame or a time-out of Beast.
  void on_read_failed(time now);
  void on_written();
  /// The closing handshake is over.
  void on_close_done(time now);
  void on_deadline(time now);
  /// Closes once the dialect is idle.
  void on_drain() { draining_ = true; }
  /// Whether the output of all sockets together is too much; streams then rest earlier.
  void press(bool pressed) noexcept { guard_.press(pressed); }
  void close();

  /// To be called after every event: pauses producers for a slow reader, or cuts it off.
  void check_output(bool requests_run, time now);

  connection_actions take_actions() { return std::exchange(actions_, {}); }
  /// A message that has begun is read to its end, however slowly the client reads.
  bool wants_read() const noexcept {
    return phase_ == phase::open && (guard_.gate_open() || message_since_.has_value());
  }
  /// The next frame, valid until on_written(); nullptr: nothing to write now.
  const std::string* begin_write(time now);
  /// The close frame, once, when nothing else is to be written before it.
  std::optional<close_frame> take_close(time now);
  time next_deadline() const;
  /// The output that the client has not taken yet.
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
  std::string frame_; ///< being written
  std::optional<close_frame> wanted_close_;
  std::optional<time> message_since_; ///< when the message began that is being received
  std::int64_t message_bytes_ = 0;    ///< of it, so far
  connection_actions actions_;
  std::chrono::milliseconds answer_grace_{5000}; ///< for the client's answer to our close frame
  bool writing_ = false;
  bool draining_ = false;
};

} // namespace twill::net
