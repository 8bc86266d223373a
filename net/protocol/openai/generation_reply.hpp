// generation_reply: the common part of the replies of the Completions and Chat APIs, streamed or
// whole.
//
// There is one object per call, used on its session's strand. A stream writes one server-sent event
// per engine event and keeps no text. A whole reply collects all output and writes it at the end.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "net/protocol/codec.hpp"
#include "net/protocol/field_table.hpp"
#include "net/protocol/output_json.hpp"

namespace twill::net {

struct reply_options {
  reply_identity identity;
  bool stream = false;
  bool include_usage = false;    ///< the stream's last chunk has usage and no choices
  bool continuous_usage = false; ///< every chunk of the stream has usage
  bool token_ids = false;        ///< the field `return_token_ids`
  bool logprobs = false;
  bool tokens_as_ids = false; ///< the field `return_tokens_as_token_ids`
  bool prompt_logprobs = false;
  bool parallel_calls = true; ///< false: tool calls after the first are left out
  bool legacy_calls = false;  ///< the reply has `function_call` in place of `tool_calls`
  bool store = false;         ///< the reply is stored; each event of its stream has an id
  std::int64_t after = -1;    ///< events of the stream with numbers up to this one are left out
  std::int32_t choices_per_request = 1;
  std::vector<std::int32_t> stop_token_ids;
};

/// Reads `stream`, `store`, `stream_options`, `return_token_ids`, `return_tokens_as_token_ids`.
void read_reply_options(fields& from, reply_options& to);
void add_reply_option_rows(field_rows& to);

class generation_reply : public reply_encoder {
public:
  generation_reply(reply_options options, std::size_t n_requests);

  void on_event(std::size_t request, actors::event&& ev, std::string& out) final;
  void on_end(std::string& out) final;
  void on_error(const api_error& error, std::string& out) final;

protected:
  /// A tool call, or the new part of one in a stream.
  struct made_call {
    std::int32_t index = 0;
    bool begins = false; ///< this part is the first of the call and has the name and id
    std::string id;
    std::string name;
    std::string arguments;
  };
  struct choice {
    std::int32_t index = 0;
    std::size_t request = 0;
    bool begun = false; ///< its first chunk has been written
    std::int32_t text_offset = 0;
    std::string text;
    std::string reasoning;
    std::vector<made_call> calls;
    std::vector<actors::token_output> tokens;
    std::optional<actors::finish_reason> finish;
    std::string stop_string;
    std::int32_t stop_token = -1;
  };

  virtual std::string_view stream_object() const = 0;
  virtual std::string_view whole_object() const = 0;
  /// Writes the members of a choice after its index. In a stream `part` is the new output,
  /// otherwise all output.
  virtual void add_choice(json_writer& json, choice& state, const choice& part, bool whole) = 0;
  /// Writes the members beside `choices`.
  virtual void add_extras(json_writer& json, bool first) = 0;

  const reply_options& options() const noexcept { return options_; }
  /// Token ids of a prompt; empty unless the request asked for ids.
  const std::vector<std::int32_t>& prompt_ids(std::size_t request) const {
    return prompt_ids_[request];
  }
  /// Log-probabilities of a prompt's tokens; empty unless the request asked for them.
  std::span<const actors::token_output> prompt_scores(std::size_t request) const {
    return prompt_scores_[request];
  }
  void add_finish(json_writer& json, const choice& part) const;
  /// Writes `prompt_logprobs` in vLLM's form.
  void add_prompt_logprobs(json_writer& json, std::size_t request) const;

private:
  void take_parts(actors::event& ev, choice& to, std::int32_t choice_index) const;
  /// begin_event() begins a server-sent event and returns its offset in `out`. end_event() ends the
  /// event, and removes it if its number is not above the number after which the client wants to
  /// read on.
  std::size_t begin_event(std::string& out) const;
  void end_event(std::size_t begin, std::string& out);
  std::string call_id(std::int32_t choice, std::int32_t call) const;
  void write_chunk(choice& state, const choice& part, std::string& out);
  void open(json_writer& json, std::string_view object) const;

  reply_options options_;
  std::vector<choice> choices_;
  std::vector<usage_tally> tallies_;
  std::vector<std::vector<std::int32_t>> prompt_ids_;
  std::vector<std::vector<actors::token_output>> prompt_scores_;
  std::string head_; ///< JSON members that every chunk repeats, formatted once
  bool first_chunk_ = true;
  std::int64_t next_number_ = 0; ///< number of the stream's next event
};

} // namespace twill::net
