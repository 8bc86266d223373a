// response_events: the events of one response, as OpenAI's Responses API names and orders them.
//
// The same JSON objects go out as server-sent events and as WebSocket frames; a sink takes each
// with its type. `sequence_number` counts from 0 within the response. The output is a list of
// items, one after the other: reasoning, a message, function calls. On one session's strand.
#pragma once

#include <functional>

#include "net/protocol/openai/response_item.hpp"
#include "net/protocol/openai/responses.hpp"
#include "net/protocol/output_json.hpp"

namespace twill::net {

class response_events {
public:
  using sink = std::function<void(std::string_view type, std::string json)>;

  /// Without a sink nothing is written before object(). `stream_id` is repeated in every event.
  response_events(response_echo echo, sink to, std::string stream_id = {});

  /// Emits response.created and response.in_progress, where that has not been done.
  void begin();
  void on_event(actors::event&& ev);
  /// A warm-up: emits response.created, response.in_progress and response.completed at once.
  void complete_empty();
  /// One of the background is written down: emits response.created and response.queued.
  void queue();
  /// Emits response.failed if the response has begun; returns false when it has not.
  bool fail(const api_error& error);
  /// Emits response.incomplete with status "cancelled".
  void cancel();

  /// The response object as it is now.
  std::string object() const;

  const response_echo& echo() const noexcept { return echo_; }
  /// The text of all messages.
  std::string text() const;
  /// The calls, in chat's form.
  value_list tool_calls() const;
  bool begun() const noexcept { return begun_; }

private:
  using tokens = std::vector<actors::token_output>;

  void on_part(const actors::output_part& part, tokens& with);
  void add_text(response_item_kind what, std::string_view text, tokens& with);
  void begin_call(std::string_view name, const std::string& call_id);
  void add_arguments(std::string_view text);
  response_item& open_item(response_item_kind what, std::string name = {},
                           std::string call_id = {});
  void close_item(bool complete);
  void emit_response(std::string_view type);
  void emit(std::string_view type, const std::function<void(json_writer&)>& members);
  /// An event about the item that is open.
  void emit_at(std::string_view type, bool in_content,
               const std::function<void(json_writer&)>& members);
  void add_response(json_writer& json) const;
  void add_settings(json_writer& json) const;

  response_echo echo_;
  sink sink_;
  std::string stream_id_;
  std::vector<response_item> items_;
  tokens waiting_tokens_; ///< no part of the output is known for them yet
  usage_tally tally_;
  std::int32_t reasoning_tokens_ = 0;
  std::string status_ = "in_progress";
  std::string incomplete_reason_;
  std::string error_json_;
  std::int64_t sequence_ = 0;
  bool begun_ = false;
  bool item_open_ = false; ///< the last one
};

} // namespace twill::net
