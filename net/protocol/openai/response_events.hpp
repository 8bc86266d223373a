// response_events: the events of one response, named and ordered as in OpenAI's Responses API.
//
// The same JSON objects are sent as server-sent events and as WebSocket frames; a callback, the
// sink, receives each object with its type. `sequence_number` counts from 0 within the response.
// The output is a list of items: reasoning, a message, function calls. Used on one session's
// strand.
#pragma once

#include <functional>

#include "net/protocol/openai/response_item.hpp"
#include "net/protocol/openai/responses.hpp"
#include "net/protocol/output_json.hpp"

namespace twill::net {

class response_events {
public:
  using sink = std::function<void(std::string_view type, std::string json)>;

  /// If `to` is empty, no events are written, and the result is read by object(). `stream_id` is
  /// repeated in every event.
  response_events(response_echo echo, sink to, std::string stream_id = {});

  /// Emits response.created and response.in_progress, unless they have been emitted already.
  void begin();
  void on_event(actors::event&& ev);
  /// Ends a warm-up, which is a request with `generate: false`: emits response.created,
  /// response.in_progress and response.completed.
  void complete_empty();
  /// Begins a background response that has been stored: emits response.created and response.queued.
  void queue();
  /// Emits response.failed if the response has begun; returns false when it has not.
  bool fail(const api_error& error);
  /// Emits response.incomplete with status "cancelled".
  void cancel();

  /// The response object in its present state.
  std::string object() const;

  const response_echo& echo() const noexcept { return echo_; }
  /// The texts of all messages, joined.
  std::string text() const;
  /// The tool calls, in the Chat API's form.
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
  /// Emits an event about the open item.
  void emit_at(std::string_view type, bool in_content,
               const std::function<void(json_writer&)>& members);
  void add_response(json_writer& json) const;
  void add_settings(json_writer& json) const;

  response_echo echo_;
  sink sink_;
  std::string stream_id_;
  std::vector<response_item> items_;
  tokens waiting_tokens_; ///< tokens that belong to the next part of the output
  usage_tally tally_;
  std::int32_t reasoning_tokens_ = 0;
  std::string status_ = "in_progress";
  std::string incomplete_reason_;
  std::string error_json_;
  std::int64_t sequence_ = 0;
  bool begun_ = false;
  bool item_open_ = false; ///< the last item is open
};

} // namespace twill::net
