// http_connection: one HTTP/1.1 connection as a state machine without I/O: events in, actions out.
//
// The session tells it what the socket, the parser, the engine and the clock have done. After each
// event it does what the connection asks for: take_actions(), begin_write(), next_deadline(). A
// read is always pending as long as the connection is open, also while a reply is computed: that is
// how a client's leaving is seen at once. On the session's strand.
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
    least_rate input; ///< of heads, which have its first time alone, and of bodies
    std::chrono::milliseconds idle_timeout;
    std::chrono::milliseconds keep_alive; ///< a silent stream gets a filler; 0: none
  };

  enum class phase {
    idle,           ///< between requests
    receiving_head, ///< part of a head has arrived
    receiving_body, ///< a head has arrived, and part of its body
    answering,      ///< a whole request is being answered
    finishing,      ///< no further request; what waits is written, then the socket half-closes
    lingering,      ///< half-closed; the client may close its end for a moment
    closed,
  };

  http_connection(limits l, time now) : limits_(l), guard_(l.output), since_(now) {}

  phase now_in() const noexcept { return phase_; }
  bool receiving() const noexcept {
    return phase_ == phase::receiving_head || phase_ == phase::receiving_body;
  }
  /// What has arrived may be parsed: no reply is being computed and the client reads its replies.
  bool accepts_input() const noexcept;
  /// What arrives is to be dropped.
  bool drops_input() const noexcept { return phase_ >= phase::finishing; }

  // --- requests: a head, its body, then a whole request; or one that is refused ----------------
  void on_head_begun(time now);
  /// A head that is accepted; its body is to come.
  void on_head(reply_framing framing, time now);
  void on_continue_wanted(time now); ///< the client waits for "100 Continue"
  void on_body_bytes(std::int64_t so_far) { body_bytes_ = so_far; }
  void on_whole_request() { phase_ = phase::answering; }
  /// A request that is not read to its end: it is answered, then the connection closes.
  void refuse(const http_reply& reply, reply_framing framing, time now);
  void refuse(const http_reply& reply, time now) { refuse(reply, framing_, now); }

  // --- the answer to the request that is being answered -----------------------------------------
  void on_reply(const http_reply& reply, time now);
  void on_call(call& answer, std::uint64_t first_key, time now);
  void on_engine_events(std::vector<std::pair<std::uint64_t, actors::event>> events, time now);
  /// A body of `bytes` that the session reads piece by piece, whenever wants_file_piece().
  void on_file(const http_reply& head, std::int64_t bytes, time now);
  bool wants_file_piece() const noexcept;
  std::int64_t file_bytes_left() const noexcept { return file_bytes_left_; }
  void on_file_piece(std::string piece, time now);

  // --- the socket, the clock and the server -----------------------------------------------------
  void on_written(time now);
  void on_peer_closed(time now);
  void on_deadline(time now);
  void on_drain(time now); ///< no request after the one under way
  /// Whether the output of all sockets together is too much; streams then rest earlier.
  void press(bool pressed) noexcept { guard_.press(pressed); }
  void close();
  /// The socket now belongs to a WebSocket session.
  void on_upgraded() { phase_ = phase::closed; }

  connection_actions take_actions() { return std::exchange(actions_, {}); }
  /// The bytes to write next, valid until on_written(); nullptr: nothing to write now.
  const std::string* begin_write(time now);
  /// All output has been handed over and written.
  bool output_empty() const noexcept { return out_.empty(); }
  /// What waits for the client, and what a reply that is not whole yet has gathered.
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
  time since_;        ///< when the client was expected to send something
  time silent_since_; ///< when a stream's last bytes were written, or it began
  reply_framing framing_;
  std::optional<call_reply> call_;
  std::int64_t body_bytes_ = 0; ///< of the body that is being received
  std::int64_t file_bytes_left_ = 0;
  connection_actions actions_;
  bool peer_closed_ = false; ///< the client will send nothing more
};

} // namespace twill::net
