// stream_dialect: /v1/stream, twill's own WebSocket protocol (net/STREAM.md), without the socket.
//
// Events of one request that arrive while the writer is busy are merged into one frame. A client
// may grant credit, which is the number of tokens that it accepts. Once the credit is used up,
// events are held back, and the request is paused until the client grants more.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>

#include "net/protocol/dialect.hpp"
#include "net/protocol/output_json.hpp"
#include "net/protocol/stream/stream_request.hpp"

namespace twill::net {

class stream_dialect final : public dialect {
public:
  explicit stream_dialect(dialect_scope scope) : scope_(std::move(scope)) {}

  void on_message(std::string_view text) override;
  void on_event(engine_requests::key from, actors::event&& ev) override;
  void on_error(const api_error& error) override;
  bool next_frame(std::string& out) override;
  std::size_t waiting_bytes() const override { return waiting_bytes_; }
  bool idle() const override { return streams_.empty() && control_.empty() && ready_.empty(); }

private:
  struct stream {
    std::string id;               ///< JSON text: "a" or 7
    engine_requests::key key = 0; ///< 0: the stored stream to resume is still being looked for
    stream_form form;
    std::string stored;   ///< id of the stored response; empty if not stored
    bool limited = false; ///< the client limits the output by credit
    std::int64_t credit = 0;
    bool cancelled = false;
    bool queued = false;        ///< the stream is in ready_
    std::int64_t after = -1;    ///< number of the last event that the client has received
    std::int64_t n_arrived = 0; ///< events that have arrived, also those the client had before
    std::int64_t n_written = 0; ///< events put in frames, also those the client had before
    usage_tally tally;
    std::deque<actors::event> held;
  };
  using stream_ptr = std::shared_ptr<stream>;

  void submit(const value& message);
  void resume(const value& message);
  void cancel(const value& message);
  void grant(const value& message);
  result<asked_stream> read_submit(const value& message);
  stream_ptr read_new(const value& message);
  bool has_place(const std::string& id);
  void begin(const stream_ptr& s, engine_requests::key key);
  void follow(const stream_ptr& s, result<std::optional<followed_response>> found);
  api_error no_stored(const std::string& id) const;
  stream_ptr find(const value& message, std::string& id);
  void pause_engine(const stream& s);
  void enqueue(const stream_ptr& s);
  bool may_send(const stream& s) const;
  void write_frame(stream& s, std::string& out);
  void write_output(json_writer& json, const stream& s, const actors::event& ev) const;
  static void write_text(json_writer& json, const stream& s, const actors::event& ev);
  void end_by_client(const stream& s);
  void end(const stream& s);
  void forget(const stream& s);
  void control(std::string frame);
  /// `over`: no further frame will have this id.
  void refuse(const std::string& id, const api_error& error, bool over);

  dialect_scope scope_;
  std::unordered_map<std::string, stream_ptr> streams_; ///< by id
  std::unordered_map<engine_requests::key, stream_ptr> by_key_;
  std::deque<stream_ptr> ready_; ///< streams with something to send
  std::deque<std::string> control_;
  std::size_t waiting_bytes_ = 0;
};

} // namespace twill::net
