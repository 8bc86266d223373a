// responses_socket: OpenAI's Responses API over a WebSocket, without the socket.
//
// Each event is one frame. The requests with the same `stream_id` form a lane: they run one after
// the other, while those of different lanes run in parallel. The newest response of each lane is
// remembered until the socket closes, also with `store: false`. A request that fails makes the
// socket forget the response that the request continued.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <unordered_map>

#include "net/protocol/dialect.hpp"
#include "net/protocol/openai/response_events.hpp"
#include "net/protocol/openai/response_store.hpp"

namespace twill::net {

class responses_socket final : public dialect {
public:
  explicit responses_socket(dialect_scope scope)
      : scope_(std::move(scope)), store_(scope_.responses), scope_id_(scope_.socket_id) {}
  ~responses_socket() override;

  void on_message(std::string_view text) override;
  void on_event(engine_requests::key from, actors::event&& ev) override;
  void on_error(const api_error& error) override;
  bool next_frame(std::string& out) override;
  std::size_t waiting_bytes() const override { return waiting_bytes_; }
  bool idle() const override { return turns_.empty() && frames_.empty(); }

private:
  struct turn {
    std::string lane;
    response_turn parsed;
    std::unique_ptr<response_events> events;
  };
  struct lane {
    std::deque<std::string> waiting;  ///< messages of turns that have not started, unparsed
    engine_requests::key running = 0; ///< key of the running turn; 0: nothing runs
    std::string newest; ///< id of the lane's newest response that only this socket remembers
    std::uint64_t last_use = 0;
  };

  void create(const value& message, std::string_view text);
  void cancel(const value& message);
  lane* open_lane(const std::string& name);
  void start_next(const std::string& name);
  void start_turn(const std::string& name, const value& message);
  result<engine_requests::key> start_request(turn& of, const value& message);
  void end_turn(engine_requests::key key);
  void remember_turn(const turn& t);
  void fail_turn(engine_requests::key key, const api_error& error);
  void refuse(const std::string& lane, const api_error& error);
  void push(std::string frame);

  dialect_scope scope_;
  response_store& store_;
  std::uint64_t scope_id_; ///< number of this socket in the store
  std::map<std::string, lane> lanes_;
  std::unordered_map<engine_requests::key, turn> turns_;
  std::deque<std::string> frames_;
  std::size_t waiting_bytes_ = 0;
  std::size_t waiting_turns_bytes_ = 0;
  std::uint64_t uses_ = 0;
};

} // namespace twill::net
