// ollama_reply: the replies of /api/chat and /api/generate, as lines of JSON or as one object.
//
// There is one object per call, used on its session's strand. A stream has one JSON line for each
// event with output, and a last line with `"done": true`. Nothing is written between events to keep
// an idle connection open, because the format has nothing that clients would skip. A tool call is
// written once it is complete, with its arguments as an object.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/protocol/codec.hpp"
#include "net/protocol/json/json_writer.hpp"
#include "net/protocol/ollama/times.hpp"
#include "net/protocol/output_json.hpp"

namespace twill::net {

struct ollama_reply_options {
  std::string model; ///< the model's name as the client wrote it
  std::string id;    ///< the ids of tool calls are derived from this id
  bool chat = false; ///< the answer is written as `message`, not as `response`
  bool stream = true;
  bool logprobs = false;
  bool context = false; ///< the last line has the token ids of the prompt and the answer
  /// "load" or "unload" if the request has no prompt: `done_reason` of a reply without any output.
  std::string_view settled_as;
  reply_moment (*now)() = moment_now;
};

class ollama_reply final : public reply_encoder {
public:
  explicit ollama_reply(ollama_reply_options options);

  stream_format format() const override { return {"application/x-ndjson", ""}; }
  void on_event(std::size_t request, actors::event&& ev, std::string& out) override;
  void on_end(std::string& out) override;
  void on_error(const api_error& error, std::string& out) override;

private:
  struct made_call {
    std::int32_t index = 0;
    std::string id;
    std::string name;
    std::string arguments; ///< JSON
  };
  struct part {
    std::string text;
    std::string thinking;
    std::vector<made_call> calls;
    std::vector<actors::token_output> tokens;

    bool says_something() const {
      return !text.empty() || !thinking.empty() || !calls.empty() || !tokens.empty();
    }
  };

  void take(actors::event& ev, part& to);
  void end_call(bool complete, part& to);
  void open(json_writer& json) const;
  void add_answer(json_writer& json, const part& said) const;
  void add_calls(json_writer& json, const std::vector<made_call>& calls) const;
  void write_part(const part& said, std::string& out) const;
  void add_durations(json_writer& json) const;

  using steady = std::chrono::steady_clock::time_point;

  ollama_reply_options options_;
  usage_tally tally_;
  part whole_;                    ///< the collected output, if the reply is not streamed
  std::optional<made_call> open_; ///< a tool call that has begun and not ended
  std::vector<std::int32_t> ids_; ///< token ids of the prompt and the answer, if `context` is set
  std::optional<actors::finish_reason> finish_;
  steady asked_;                ///< time when the request had been read
  std::optional<steady> begun_; ///< time of the first event
  std::optional<steady> drawn_; ///< time of the first token
  steady last_;                 ///< time of the last event
};

} // namespace twill::net
