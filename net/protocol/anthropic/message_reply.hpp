// message_reply: the answer to a request of the Messages API, streamed or whole.
//
// There is one object per call, used on its session's strand. A stream starts at the engine's first
// event, because that event has the number of prompt tokens. The number of cached tokens is known
// only later, and is written in `message_delta`. A block that would contain only white space is
// left out, because clients cannot send such blocks back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/protocol/anthropic/call_input.hpp"
#include "net/protocol/codec.hpp"
#include "net/protocol/output_json.hpp"

namespace twill::net {

/// Which part of the model's reasoning the reply contains.
enum class thinking_shown : std::uint8_t {
  text,
  signature, ///< thinking blocks with empty text, only with a signature
  no,        ///< no thinking blocks, because the client wants none
};

struct message_options {
  reply_identity identity;
  bool stream = false;
  bool parallel_calls = true;      ///< false: tool calls after the first are left out
  bool context_management = false; ///< the reply states that nothing was edited
  thinking_shown thinking = thinking_shown::text;
  std::int32_t max_tokens = 0;
};

class message_reply final : public reply_encoder {
public:
  explicit message_reply(message_options options) : options_(std::move(options)) {}

  stream_format format() const override {
    return {"text/event-stream; charset=utf-8", "event: ping\ndata: {\"type\":\"ping\"}\n\n"};
  }
  void on_event(std::size_t request, actors::event&& ev, std::string& out) override;
  void on_end(std::string& out) override;
  void on_error(const api_error& error, std::string& out) override;

private:
  enum class block { none, text, thinking, tool_use };

  void begin(std::string& out);
  void take_part(const actors::output_part& part, std::string& out);
  void take_words(block what, std::string_view words, std::string& out);
  void add_words(std::string_view words, std::string& out);
  void begin_call(const actors::output_part& part, std::string& out);
  void open_block(block what, std::string& out);
  void close_block(std::string& out);
  void add_whole_block();
  void add_message(json_writer& json, bool whole) const;
  void add_usage_to(json_writer& json) const;
  void add_stop(json_writer& json) const;
  std::string_view stop_reason() const;
  std::string signature() const;

  message_options options_;
  usage_tally tally_;
  std::int32_t thinking_tokens_ = 0;
  std::optional<actors::finish_reason> finish_;
  std::string stop_string_;
  bool begun_ = false;

  block open_ = block::none;
  std::int64_t index_ = -1;     ///< index of the block that began last
  block awaited_ = block::none; ///< kind of block that begins with `space_` once other text follows
  std::string space_;           ///< white space after which no other text has arrived yet
  bool after_thinking_ = false; ///< the next text follows reasoning: its leading blanks are dropped

  std::int32_t call_ = -1; ///< index of the tool call whose block is open
  std::string call_id_, call_name_;
  call_input input_;

  std::string words_;   ///< text of the open block, if the reply is not streamed
  std::string content_; ///< the finished blocks as JSON, if the reply is not streamed
};

} // namespace twill::net
