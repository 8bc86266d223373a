// response_events: the events of one response, as OpenAI's Responses API names and orders them.
//
// The same JSON objects go out as server-sent events and as WebSocket frames; a sink takes each
// with its type. `sequence_number` counts from 0 within the response. On one session's strand.
#pragma once

#include <functional>

#include "net/protocol/openai/responses.hpp"
#include "net/protocol/output_json.hpp"

namespace twill::net {

class response_events {
public:
  using sink = std::function<void(std::string_view type, std::string json)>;

  /// Without a sink nothing is written before object(). `stream_id` is repeated in every event.
  response_events(response_echo echo, sink to, std::string stream_id = {});

  void on_event(actors::event&& ev);
  /// A warm-up: emits response.created, response.in_progress and response.completed at once.
  void complete_empty();
  /// Emits response.failed if the response has begun; returns false when it has not.
  bool fail(const api_error& error);
  /// Emits response.incomplete with status "cancelled".
  void cancel();

  /// The response object as it is now.
  std::string object() const;

  const response_echo& echo() const noexcept { return echo_; }
  const std::string& text() const noexcept { return text_; }
  bool begun() const noexcept { return begun_; }

private:
  void begin();
  void open_item();
  void close_item();
  void emit_response(std::string_view type);
  void emit(std::string_view type, const std::function<void(json_writer&)>& members);
  void add_response(json_writer& json) const;
  void add_settings(json_writer& json) const;
  void add_item(json_writer& json, std::string_view status, bool with_content) const;
  void add_part(json_writer& json, bool filled) const;
  void add_place(json_writer& json) const;

  response_echo echo_;
  sink sink_;
  std::string stream_id_;
  std::string item_id_;
  std::string text_;
  std::vector<actors::token_output> logprobs_;
  usage_tally tally_;
  std::string status_ = "in_progress";
  std::string incomplete_reason_;
  std::string error_json_;
  std::int64_t sequence_ = 0;
  bool begun_ = false;
  bool item_open_ = false;
  bool item_made_ = false;
};

} // namespace twill::net
