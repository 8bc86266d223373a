// http_connection: the state machine of one HTTP/1.1 connection, without I/O.
//
// The session reports what the socket, the parser, the engine and the clock have done. After each
// report, the session does what the state machine asks for by take_actions(), begin_write() and
// next_deadline(). The session keeps a read pending as long as the connection is open, also while a
// reply is computed, in order to notice at once when the client disconnects. Used on the session's
// strand.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/connection/connection_guard.hpp"
#include "net/connection/least_rate.hpp"
#include "net/connection/write_queue.hpp"
#include "net/http/call_reply.hpp"

namespace twill::net {

class http_connection {
public:
  using time = connection_guard::time;

  struct limits {
    connection_guard::limits output;
    least_rate input; ///< least speed of input; a head must arrive within the rate's initial time
    std::chrono::milliseconds idle_timeout;
    std::chrono::milliseconds keep_alive; ///< interval of fillers in a silent stream; 0: no fillers
  };

  enum class phase {
    idle,           ///< between requests
    receiving_head, ///< part of a head has arrived
    receiving_body, ///< a head has arrived, and part of its body
    answering,      ///< a whole request has arrived and is being answered
    finishing,      ///< reads no further request; writes pending output, then half-closes
    lingering,      ///< half-closed; the client has a moment to close its end
    closed,
  };

  http_connection(limits l, time now) : limits_(l), guard_(l.output), since_(now) {}

  phase now_in() const noexcept { return phase_; }
  bool receiving() const noexcept {
    return phase_ == phase::receiving_head || phase_ == phase::receiving_body;
  }
  /// True if the input may be parsed, because no reply is being computed and the client reads its
  /// replies.
  bool accepts_input() const noexcept;
  /// True if arriving input is to be discarded.
  bool drops_input() const noexcept { return phase_ >= phase::finishing; }

  // --- requests: a head, its body, then the whole request; or a request that is refused ---------
  void on_head_begun(time now);
  /// The head of a request has been accepted; its body follows.
  void on_head(reply_framing framing, time now);
  void on_continue_wanted(time now); ///< the client waits for "100 Continue"
  void on_body_bytes(std::int64_t so_far) { body_bytes_ = so_far; }
  void on_whole_request() { phase_ = phase::answering; }
  /// Answers a request without reading its remaining input; then the connection closes.
  void refuse(const http_reply& reply, reply_framing framing, time now);
  void refuse(const http_reply& reply, time now) { refuse(reply, framing_, now); }

  // --- the reply to the current request ---------------------------------------------------------
  void on_reply(const http_reply& reply, time now);
  void on_call(call& answer, std::uint64_t first_key, time now);
  void on_engine_events(std::vector<std::pair<std::uint64_t, actors::event>> events, time now);
  /// Begins a reply with a body of `bytes`. The session reads the body piece by piece, whenever
  /// wants_file_piece() is true.
  void on_file(const http_reply& head, std::int64_t bytes, time now);
  bool wants_file_piece() const noexcept;
  std::int64_t file_bytes_left() const noexcept { return file_bytes_left_; }
  void on_file_piece(std::string piece, time now);

  // --- the socket, the clock and the server -----------------------------------------------------
  void on_written(time now);
  void on_peer_closed(time now);
  void on_deadline(time now);
  void on_drain(time now); ///< no further request is accepted after the current one
  /// `pressed` is true while all sockets together hold too much output; streams then pause earlier.
  void press(bool pressed) noexcept { guard_.press(pressed); }
  void close();
  /// The socket has been handed over to a WebSocket session.
  void on_upgraded() { phase_ = phase::closed; }

  connection_actions take_actions() { return std::exchange(actions_, {}); }
  /// The bytes to write next, valid until on_written(); nullptr if there is nothing to write now.
  const std::string* begin_write(time now);
  /// True if all output has been written.
  bool output_empty() const noexcept { return out_.empty(); }
  /// Bytes that wait to be sent to the client, plus the bytes that are collected for a reply which
  /// is sent only when it is complete.
  std::size_t output_bytes() const noexcept {
    return out_.bytes() + (call_.has_value() ? call_->gathered_bytes() : 0);
  }
  time next_deadline() const;

private:
  void finish_request(time now);
  void finish(time now);
  void linger(time now);
  void cut_off(time now);
  void check_output(time now);
  void break_silence(time now);
  time receiving_deadline() const;
  time silence_deadline() const;

  limits limits_;
  connection_guard guard_;
  write_queue out_;
  phase phase_ = phase::idle;
  time since_;        ///< when the connection began to wait for the client's input
  time silent_since_; ///< when a stream last wrote bytes, or when it began
  reply_framing framing_;
  std::optional<call_reply> call_;
  std::int64_t body_bytes_ = 0; ///< bytes received so far of the current body
  std::int64_t file_bytes_left_ = 0;
  connection_actions actions_;
  bool peer_closed_ = false; ///< the client has closed its sending half
};

} // namespace twill::net
