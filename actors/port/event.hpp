// event: what happens to a request, as the engine reports it to the callback that was given with
// the request. Plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/port/request_error.hpp"

namespace twill::actors {

struct token_logprob {
  std::int32_t id = 0;
  std::string bytes; ///< the token's own bytes, which may be only a part of a character
  float logprob = 0;
  bool special = false; ///< a control token, which yields no text unless the request asks for it
};

struct token_output {
  token_logprob chosen; ///< its logprob is meaningful only if log-probabilities were asked for
  std::vector<token_logprob> top; ///< most likely first
};

enum class finish_reason {
  stop,       ///< an end id, a stop string, or the grammar's end
  length,     ///< max_tokens or the context limit
  tool_calls, ///< ended as with `stop`, and the output holds at least one whole call
};

struct usage {
  std::int32_t prompt_tokens = 0;
  std::int32_t cached_tokens = 0;     ///< prompt tokens whose KV was reused
  std::int32_t completion_tokens = 0; ///< over all choices
};

enum class output_part_kind {
  text,           ///< `text` continues the answer
  reasoning,      ///< `text` continues the reasoning
  call_begin,     ///< `text` is the function's name
  call_arguments, ///< `text` continues the call's arguments, which are JSON text
  call_end,       ///< the call has ended; `complete` says whether its arguments are complete
};

/// A piece of an output that is parsed into text, reasoning and tool calls.
struct output_part {
  output_part_kind kind = output_part_kind::text;
  std::string text;
  std::int32_t call = -1; ///< which call of the choice, from 0; -1 for text and reasoning
  bool complete = true;   ///< for call_end: whether the arguments are complete
  std::string call_id;    ///< for call_begin: the id that the model gave the call; empty: none
};

/// One thing that happened to a request.
struct event {
  std::int32_t choice = 0;
  bool started = false; ///< the first event: the request is queued; prompt_tokens is known
  /// Set in the first event: a text that identifies all that the output depends on beside the
  /// request itself: the prompt's tokens, the tokens that end the output, the model's files, the
  /// program and the processor.
  std::string continuity;
  std::vector<std::int32_t> prompt_ids; ///< set in the first event if `echo_prompt_ids` was set
  /// the tokens that this event adds, each with its log-probabilities
  std::vector<token_output> tokens;
  /// Set in the first event of a request with prompt_logprobs >= 0: each prompt token with its
  /// log-probability given the tokens before it. The first prompt token has no log-probability
  /// (NaN) and no alternatives.
  std::vector<token_output> prompt_scores;
  /// The vector that `pooling` asked for, as the model computes it: it is not scaled to length 1.
  /// Null in other events.
  std::shared_ptr<const std::vector<float>> embedding;
  /// The parts of the output that became final, if the request set parse_output; `text` is empty
  /// then.
  std::vector<output_part> parts;
  std::string text; ///< Text that became final, in whole characters and without stop strings.
  std::optional<finish_reason> finish; ///< set in the last event of the choice: why it ended
  std::string stop_string;             ///< the stop string that ended the choice; empty: none
  /// the token id that ended the choice (an end id or one of stop_token_ids); -1: none
  std::int32_t stop_token = -1;
  /// the whole request has failed; no event with `finish` follows
  std::optional<request_error> error;
  bool last = false; ///< the request is over; nothing follows
  usage use;
};

using event_callback = std::function<void(event)>;

} // namespace twill::actors
